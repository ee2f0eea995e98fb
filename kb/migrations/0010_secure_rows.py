"""Row-level security: a statement that forgets to ask for whom it reads finds nothing else.

The backend of `accounts.postgresql` tells in `application_name` who reads. What may be
read stands once, in `nescio_audiences`, and is computed once for a statement: a
sub-select there, unlike a bare call, is not computed for each row.

Vectors are not under it. They tell no text, every search joins them to entries, and a
policy on them would ask for the entry of each of many thousands.
"""

import django.contrib.postgres.search
from django.db import migrations, models

_AUDIENCES = """
CREATE FUNCTION nescio_audiences() RETURNS bigint[]
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
    label constant text := current_setting('application_name');
BEGIN
    IF label LIKE 'nescio:user:%' THEN
        RETURN ARRAY(
            SELECT a.id FROM kb_audience a, auth_user u
            WHERE u.id = substr(label, 13)::bigint AND u.is_active AND (
                u.is_superuser OR a.everyone OR EXISTS (
                    SELECT FROM kb_audience_groups ag
                    JOIN auth_user_groups ug ON ug.group_id = ag.group_id
                    WHERE ag.audience_id = a.id AND ug.user_id = u.id
                )
            )
        );
    ELSIF label IN ('nescio:everything', 'nescio:owner') THEN
        RETURN ARRAY(SELECT id FROM kb_audience);
    ELSIF label = 'nescio:nobody' THEN
        RETURN '{}';
    END IF;
    RAISE insufficient_privilege USING
        MESSAGE = 'It was not said for whom knowledge is read.',
        HINT = 'In code: accounts.acting. In psql: SET application_name = '
            '''nescio:user:'' and the id of a user, or ''nescio:everything''.';
END $$;
"""
_IN_AUDIENCE = "audience_id = ANY ((SELECT nescio_audiences())::bigint[])"

_POLICIES = f"""
ALTER TABLE kb_entry ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_entry_audience ON kb_entry USING ({_IN_AUDIENCE});

ALTER TABLE kb_document ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_document_audience ON kb_document USING ({_IN_AUDIENCE});

-- What belongs to an entry or a document is seen with it: their own policies hold inside.
ALTER TABLE kb_revision ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_revision_entry ON kb_revision
    USING (EXISTS (SELECT FROM kb_entry e WHERE e.id = entry_id));

ALTER TABLE kb_section ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_section_document ON kb_section
    USING (EXISTS (SELECT FROM kb_document d WHERE d.id = document_id));
"""  # noqa: S608  # own constants

# Full text is searched through a view with the same condition: PostgreSQL asks a policy
# before any function that is not marked as leakproof, as @@ is not, and so would never use
# the index of the words. A view of its owner's has no policy below it.
#
# Why nothing could be said is found out beyond what the asker may see (kb/search/excluded.py),
# by the second view: it holds no word.
_VIEWS = f"""
CREATE VIEW kb_entrywords AS
SELECT id, knowledge_base_id, audience_id, state, confidence, valid_until, language,
       search_vector
FROM kb_entry WHERE {_IN_AUDIENCE};

CREATE VIEW kb_entryoutline AS
SELECT id, knowledge_base_id, audience_id, state, confidence, valid_until FROM kb_entry;
"""  # noqa: S608  # own constants

# A deferred trigger runs when the transaction ends, whoever reads then; it judges by all
# entries there are.
_TRIGGER = """
DO $$ BEGIN
    EXECUTE format('ALTER FUNCTION kb_refuse_revision_delete() SECURITY DEFINER'
                   ' SET search_path = %I, pg_temp', current_schema());
END $$;
"""

_BACKWARD = """
ALTER FUNCTION kb_refuse_revision_delete() SECURITY INVOKER RESET search_path;
DROP VIEW kb_entryoutline;
DROP VIEW kb_entrywords;
DROP POLICY kb_section_document ON kb_section;
DROP POLICY kb_revision_entry ON kb_revision;
DROP POLICY kb_document_audience ON kb_document;
DROP POLICY kb_entry_audience ON kb_entry;
ALTER TABLE kb_section DISABLE ROW LEVEL SECURITY;
ALTER TABLE kb_revision DISABLE ROW LEVEL SECURITY;
ALTER TABLE kb_document DISABLE ROW LEVEL SECURITY;
ALTER TABLE kb_entry DISABLE ROW LEVEL SECURITY;
DROP FUNCTION nescio_audiences();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_add_application_role"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("kb", "0009_keep_conflicts"),
    ]

    operations = [
        migrations.RunSQL([_AUDIENCES + _POLICIES + _VIEWS + _TRIGGER], [_BACKWARD]),
        migrations.CreateModel(
            name="EntryWords",
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
                ("language", models.CharField(max_length=2)),
                (
                    "search_vector",
                    django.contrib.postgres.search.SearchVectorField(),
                ),
            ],
            options={"db_table": "kb_entrywords", "managed": False},
        ),
    ]
