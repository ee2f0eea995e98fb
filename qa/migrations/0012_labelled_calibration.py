from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("qa", "0011_bounds_over_groups"),
    ]

    operations = [
        migrations.AddField(
            model_name="selfcalibrationsettings",
            name="uses_evaluations",
            field=models.BooleanField(
                default=False,
                help_text="Those of the newest evaluation of own questions; they then test nothing any more. Questions judged in reviews are always used.",
                verbose_name="labelled questions too",
            ),
        ),
        migrations.AlterField(
            model_name="selfcalibration",
            name="entries",
            field=models.PositiveIntegerField(
                help_text="Entries that own questions are of."
            ),
        ),
        migrations.AddField(
            model_name="selfcalibration",
            name="reviewed",
            field=models.PositiveIntegerField(
                default=0,
                help_text="Questions that experts judged in reviews, weighted by strata.",
            ),
        ),
        migrations.AddField(
            model_name="selfcalibration",
            name="evaluated",
            field=models.PositiveIntegerField(
                default=0,
                help_text="Labelled questions of the newest evaluation, if used.",
            ),
        ),
        migrations.AddField(
            model_name="selfcalibration",
            name="named",
            field=models.PositiveIntegerField(
                default=0, help_text="Own questions whose entry a voter pointed out."
            ),
        ),
    ]
