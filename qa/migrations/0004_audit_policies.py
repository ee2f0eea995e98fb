from django.db import migrations

TRIGGERS = """
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON qa_policy
    FOR EACH ROW EXECUTE FUNCTION accounts_audit(
        'policy', 'knowledge_base_id kb_knowledgebase slug');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON qa_refusalwording
    FOR EACH ROW EXECUTE FUNCTION accounts_audit(
        'refusal wording', 'knowledge_base_id kb_knowledgebase slug');
"""
UNDO = """
DROP TRIGGER audit ON qa_policy;
DROP TRIGGER audit ON qa_refusalwording;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_audit_entries"),
        ("qa", "0003_self_calibration"),
    ]

    operations = [migrations.RunSQL(TRIGGERS, UNDO)]
