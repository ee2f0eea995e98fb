from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("qa", "0015_entries_voted_down")]

    operations = [
        migrations.AddField(
            model_name="retraining",
            name="recalibrated",
            field=models.JSONField(
                default=list,
                help_text="[before, after]: the policies whose minimum was set for the new probe.",
            ),
        ),
        migrations.AddField(
            model_name="retraining",
            name="scores",
            field=models.JSONField(
                default=list,
                help_text="[former confidence, new one, is right, weight] of each golden answer.",
            ),
        ),
    ]
