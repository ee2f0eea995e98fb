from pathlib import Path

from django.db import migrations

TRIGGERS = Path(__file__).with_name("copies.sql").read_text()
UNDO = """
DROP FUNCTION integrations_note_revision, integrations_note_vote, integrations_note_done
CASCADE;
"""


class Migration(migrations.Migration):
    dependencies = [("integrations", "0003_alerts")]

    operations = [migrations.RunSQL(TRIGGERS, UNDO)]
