from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models

RULES = Path(__file__).with_name("planned_entries.sql").read_text()
UNDO = """
DROP POLICY kb_plannedentry_entry ON kb_plannedentry;
ALTER TABLE kb_plannedentry DISABLE ROW LEVEL SECURITY,
    DROP CONSTRAINT planned_entry_of_import, DROP CONSTRAINT planned_entry_of_entry;
"""


class Migration(migrations.Migration):
    dependencies = [("kb", "0022_own_keys")]

    operations = [
        migrations.AddField(
            model_name="import",
            name="planned_at",
            field=models.DateTimeField(
                blank=True, help_text="When its plan was begun.", null=True
            ),
        ),
        migrations.AddField(
            model_name="plannedentry",
            name="entry",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                help_text="None where it would be made.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="kb.entry",
            ),
        ),
        migrations.AlterField(
            model_name="plannedentry",
            name="import_run",
            field=models.ForeignKey(
                db_constraint=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="planned",
                to="kb.import",
            ),
        ),
        migrations.AddField(
            model_name="plannedentry",
            name="is_edited",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Whether a person wrote that, since the entry was last imported.",
            ),
        ),
        migrations.RunSQL(RULES, UNDO),
    ]
