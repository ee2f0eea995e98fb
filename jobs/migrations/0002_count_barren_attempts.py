from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="job",
            name="barren_attempts",
            field=models.PositiveIntegerField(
                default=0,
                help_text="Runs in a row, the present one too, without progress.",
            ),
        ),
        migrations.AlterField(
            model_name="job",
            name="max_attempts",
            field=models.PositiveIntegerField(
                default=5,
                help_text="The job fails after so many runs without progress.",
            ),
        ),
    ]
