import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("qa", "0016_probes_bring_minimums")]

    operations = [
        migrations.AddField(
            model_name="reviewstratum",
            name="certainty",
            field=models.CharField(
                blank=True,
                choices=[("close", "close"), ("clear", "clear")],
                default="",
                max_length=5,
            ),
            preserve_default=False,
        ),
        migrations.AlterField(
            model_name="reviewsample",
            name="dimensions",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(
                    choices=[
                        ("certainty", "certainty"),
                        ("outcome", "outcome and gate"),
                        ("vote", "vote"),
                        ("product_line", "product line"),
                        ("line_of_business", "line of business"),
                        ("period", "day"),
                    ],
                    max_length=16,
                ),
                default=list,
                help_text="Dimensions of its strata; others were merged because there were more strata than reviews.",
                size=None,
            ),
        ),
    ]
