from pathlib import Path

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

RULES = Path(__file__).with_name("wordings.sql").read_text()
UNDO = """
DROP FUNCTION kb_audit_wording CASCADE;
DROP POLICY kb_wording_entry ON kb_wording;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("kb", "0015_flag_reasons"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Wording",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "text",
                    models.TextField(max_length=500, verbose_name="also asked as"),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "added_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="entry_wordings",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "entry",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="wordings",
                        to="kb.entry",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("entry", "text"), name="wording_once_an_entry"
                    )
                ],
            },
        ),
        migrations.RunSQL(RULES, UNDO),
    ]
