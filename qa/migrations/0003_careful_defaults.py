import django.core.validators
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    """Defaults are Django's own: the database is not changed, nor any policy that exists."""

    dependencies = [("qa", "0002_self_calibrated_answers")]

    operations = [
        migrations.AlterField(
            model_name="policy",
            name="min_answerability",
            field=models.FloatField(
                default=0.8,
                help_text="Minimum probability, by the verifier, that any entry answers the question; below it the language model is not asked. 0 lets all pass.",
                validators=[
                    django.core.validators.MinValueValidator(0.0),
                    django.core.validators.MaxValueValidator(1.0),
                ],
            ),
        ),
        migrations.AlterField(
            model_name="policy",
            name="min_entry_answer",
            field=models.FloatField(
                default=0.8,
                help_text="Minimum probability, by the verifier, at which a verified entry, or two that are about equally likely, are shown whole as the answer; above 1 none is shown.",
                validators=[
                    django.core.validators.MinValueValidator(0.0),
                    django.core.validators.MaxValueValidator(1.01),
                ],
            ),
        ),
        migrations.AlterField(
            model_name="selfcalibration",
            name="created_at",
            field=models.DateTimeField(
                default=django.utils.timezone.now,
                editable=False,
                help_text="When its questions were drawn; later changes are not measured.",
            ),
        ),
    ]
