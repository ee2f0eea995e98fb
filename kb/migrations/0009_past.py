from pathlib import Path

import django.db.models.deletion
import pgvector.django.vector
from django.db import migrations, models

RULES = Path(__file__).with_name("past.sql").read_text()
UNDO = """
DROP FUNCTION kb_past;
DROP FUNCTION kb_keep_former_row CASCADE;
DROP FUNCTION kb_forget_conflict CASCADE;
DROP FUNCTION kb_keep_former_vector CASCADE;
DROP POLICY kb_formerrow_all ON kb_formerrow;
"""


class Migration(migrations.Migration):
    """Keep from now on what a question as of a moment needs and revisions don't say."""

    dependencies = [("kb", "0008_comments")]

    operations = [
        migrations.CreateModel(
            name="FormerRow",
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
                ("source", models.CharField(help_text="The table.", max_length=40)),
                ("row_id", models.BigIntegerField()),
                (
                    "was",
                    models.JSONField(
                        help_text="null: it was not there before.", null=True
                    ),
                ),
                ("until", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["source", "row_id", "until"], name="former_row_at"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="FormerVector",
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
                ("part", models.PositiveSmallIntegerField()),
                ("vector", pgvector.django.vector.VectorField()),
                (
                    "text_sha256",
                    models.CharField(
                        help_text="Digest of all that was embedded of the entry.",
                        max_length=64,
                    ),
                ),
                (
                    "entry",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="kb.entry",
                    ),
                ),
                (
                    "model",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="kb.embeddingmodel",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("entry", "model", "text_sha256", "part"),
                        name="former_vector_unique",
                    )
                ],
            },
        ),
        migrations.RunSQL(RULES, UNDO),
    ]
