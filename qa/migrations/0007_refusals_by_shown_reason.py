from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("kb", "0001_initial"),
        ("qa", "0006_votes_name_the_entry"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        # Days that were counted by the true reason are counted again.
        migrations.RunSQL(
            "INSERT INTO qa_changedday (day) SELECT day FROM qa_countedday",
            migrations.RunSQL.noop,
        ),
        migrations.RemoveIndex(model_name="answer", name="answer_by_reason"),
        migrations.AddIndex(
            model_name="answer",
            index=models.Index(
                fields=["shown_reason", "-created_at"], name="answer_by_shown_reason"
            ),
        ),
    ]
