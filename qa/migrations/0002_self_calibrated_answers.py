from django.db import migrations, models


class Migration(migrations.Migration):
    """A longer varchar changes the catalogue alone: no row is read or written."""

    dependencies = [("qa", "0001_initial")]

    operations = [
        migrations.AlterField(
            model_name="answer",
            name="calibration",
            field=models.CharField(
                blank=True,
                choices=[
                    ("hand_set", "hand_set"),
                    ("self_calibrated", "self_calibrated"),
                    ("current", "current"),
                    ("stale", "stale"),
                ],
                max_length=15,
            ),
        )
    ]
