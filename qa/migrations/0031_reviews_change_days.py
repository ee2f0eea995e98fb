from pathlib import Path

from django.db import migrations

TRIGGERS = Path(__file__).with_name("reviews_change_days.sql").read_text()
UNDO = "DROP FUNCTION qa_note_reviewed_day CASCADE;"


class Migration(migrations.Migration):
    dependencies = [
        ("qa", "0030_shadows_and_models_by_day"),
    ]

    operations = [
        migrations.RunSQL(TRIGGERS, UNDO),
    ]
