"""Evidence under row-level security: one's own answer stays as one got it.

What an entry said is otherwise read only by who may see the entry now.
"""

import django.db.models.deletion
from django.db import migrations, models

_POLICY = """
CREATE FUNCTION nescio_user() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT substring(current_setting('application_name') FROM '^nescio:user:([0-9]+)$')::bigint
$$;

CREATE POLICY kb_revision_own_evidence ON kb_revision FOR SELECT USING (
    EXISTS (
        SELECT FROM qa_answerevidence e JOIN qa_answer a ON a.id = e.answer_id
        WHERE e.revision_id = kb_revision.id AND a.asker_id = (SELECT nescio_user())
    )
);
"""
_BACKWARD = """
DROP POLICY kb_revision_own_evidence ON kb_revision;
DROP FUNCTION nescio_user();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("kb", "0010_secure_rows"),
        ("qa", "0012_refuse_where_sources_disagree"),
    ]

    operations = [
        migrations.RunSQL([_POLICY], [_BACKWARD]),
        # Null to whom they are hidden, and never in the table.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="answerevidence",
                    name="entry",
                    field=models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="uses",
                        to="kb.entry",
                    ),
                ),
                migrations.AlterField(
                    model_name="answerevidence",
                    name="revision",
                    field=models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="uses",
                        to="kb.revision",
                    ),
                ),
            ]
        ),
    ]
