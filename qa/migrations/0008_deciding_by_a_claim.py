from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("qa", "0007_refusals_by_shown_reason")]

    operations = [
        migrations.AddField(
            model_name="answer",
            name="claimed_at",
            field=models.DateTimeField(
                blank=True,
                help_text="When somebody began to decide it, after which nobody else does.",
                null=True,
            ),
        ),
    ]
