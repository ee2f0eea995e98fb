from django.db import migrations, models

TRIGGERS = """
CREATE TRIGGER keep_former_row AFTER INSERT OR UPDATE OR DELETE ON qa_refusalwording
    FOR EACH ROW EXECUTE FUNCTION kb_keep_former_row();
"""
UNDO = "DROP TRIGGER keep_former_row ON qa_refusalwording;"


class Migration(migrations.Migration):
    """Keep what an answer is decided by again: moment, audiences, words of refusals."""

    dependencies = [("kb", "0009_past"), ("qa", "0024_inbox")]

    operations = [
        migrations.AddField(
            "answer",
            "scope",
            models.JSONField(
                blank=True,
                db_default=models.Value({}, models.JSONField()),
                default=dict,
                help_text="{at, audiences}: as of when, and within which audiences, it was decided; empty: before this was kept.",
            ),
        ),
        migrations.RunSQL(TRIGGERS, UNDO),
    ]
