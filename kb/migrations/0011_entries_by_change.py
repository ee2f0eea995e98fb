from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("kb", "0010_followed_sources")]

    operations = [
        AddIndexConcurrently(
            model_name="entry",
            index=models.Index(fields=["-updated_at", "-id"], name="entry_changed"),
        ),
    ]
