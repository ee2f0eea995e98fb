from django.db import migrations, models

# Who archived what and brought it back, as audit.sql watches the rest.
AUDIT = """
CREATE TRIGGER audit AFTER UPDATE OF archived_at ON kb_knowledgebase FOR EACH ROW
    WHEN (OLD.archived_at IS DISTINCT FROM NEW.archived_at)
    EXECUTE FUNCTION accounts_audit('knowledge base');
"""


class Migration(migrations.Migration):
    dependencies = [("kb", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="knowledgebase",
            name="archived_at",
            field=models.DateTimeField(
                editable=False,
                help_text="When it was archived; since then it is read-only and cannot be asked.",
                null=True,
            ),
        ),
        migrations.RunSQL(AUDIT, "DROP TRIGGER audit ON kb_knowledgebase"),
    ]
