from pathlib import Path

from django.db import migrations, models

RULES = Path(__file__).with_name("revision_audience.sql").read_text()
UNDO = """
ALTER POLICY kb_proposal_entry ON kb_proposal
    USING (EXISTS (SELECT FROM kb_entry e WHERE e.id = entry_id));
ALTER POLICY kb_revision_entry ON kb_revision
    USING (EXISTS (SELECT FROM kb_entry e WHERE e.id = entry_id));
DROP VIEW kb_revisionoutline;
DROP FUNCTION nescio_sees_all;
"""


class Migration(migrations.Migration):
    dependencies = [("kb", "0003_several_vectors")]

    operations = [
        migrations.RunSQL(RULES, UNDO),
        migrations.CreateModel(
            name="RevisionOutline",
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
                ("entry_id", models.BigIntegerField()),
                ("number", models.PositiveIntegerField()),
                ("audience_id", models.BigIntegerField(null=True)),
            ],
            options={"db_table": "kb_revisionoutline", "managed": False},
        ),
    ]
