from django.db import migrations

TRIGGERS = """
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON kb_audience
    FOR EACH ROW EXECUTE FUNCTION accounts_audit('audience');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON kb_audience_groups
    FOR EACH ROW EXECUTE FUNCTION accounts_audit(
        'audience group', 'audience_id kb_audience slug', 'group_id auth_group name');
"""
UNDO = """
DROP TRIGGER audit ON kb_audience;
DROP TRIGGER audit ON kb_audience_groups;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_audit_entries"),
        ("kb", "0001_initial"),
    ]

    operations = [migrations.RunSQL(TRIGGERS, UNDO)]
