import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("kb", "0014_proposals_by_decision"),
    ]

    operations = [
        migrations.AddField(
            model_name="flag",
            name="reasons",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(
                    choices=[
                        ("wrong", "It is wrong"),
                        ("incomplete", "It is incomplete"),
                        ("outdated", "It is out of date"),
                        ("unclear", "It is hard to understand"),
                        ("other", "Something else"),
                    ],
                    max_length=20,
                ),
                blank=True,
                db_default=[],
                default=list,
                size=None,
            ),
        ),
    ]
