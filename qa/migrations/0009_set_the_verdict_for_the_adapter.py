import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("qa", "0008_abstain_by_confidence"),
    ]

    operations = [
        migrations.AlterField(
            model_name="policy",
            name="min_verdict",
            field=models.FloatField(
                default=0.6,
                help_text="Least probability of the model's verdict that the evidence answers.",
                validators=[
                    django.core.validators.MinValueValidator(0.0),
                    django.core.validators.MaxValueValidator(1.0),
                ],
            ),
        ),
    ]
