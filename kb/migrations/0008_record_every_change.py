from django.db import migrations

# What a revision of before did not hold is taken from what the entry holds now, the best
# that is known; who verified an earlier one is taken to be its author, as the services
# had it. Entries that plain SQL changed since their newest revision get the missing one.
BACKFILL = """
ALTER TABLE kb_revision DISABLE TRIGGER kb_revision_no_update;

UPDATE kb_revision r SET
    language = e.language, audience_id = e.audience_id, document_id = e.document_id,
    section_id = e.section_id, owner_id = e.owner_id,
    verified_by_id = CASE
        WHEN newest.number = r.number THEN e.verified_by_id
        WHEN r.state = 'verified' THEN r.author_id
    END,
    verified_at = CASE
        WHEN newest.number = r.number THEN e.verified_at
        WHEN r.state = 'verified' THEN r.created_at
    END
FROM kb_entry e
JOIN (SELECT entry_id, max(number) AS number FROM kb_revision GROUP BY 1) newest
    ON newest.entry_id = e.id
WHERE e.id = r.entry_id;

SET CONSTRAINTS ALL IMMEDIATE;
SET CONSTRAINTS ALL DEFERRED;
ALTER TABLE kb_revision ENABLE TRIGGER kb_revision_no_update;
"""

# Judged when the transaction ends, so that a service may write entry and revision in any
# order, and one that wrote both is not recorded twice. An entry contains what its newest
# revision says, column by column of the same name, or the missing revision is written.
# With the rights of the tables' owner, whoever writes; pg_temp last, lest a temporary
# table is taken for one of these.
RECORD = """
CREATE FUNCTION kb_record_entry() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    entry jsonb;
    newest kb_revision;
BEGIN
    SELECT to_jsonb(e) INTO entry FROM kb_entry e WHERE e.id = NEW.id;
    IF NOT FOUND THEN
        RETURN NULL;  -- erased since
    END IF;
    SELECT * INTO newest FROM kb_revision r WHERE r.entry_id = NEW.id
        ORDER BY r.number DESC LIMIT 1;
    IF entry @> (to_jsonb(newest) - ARRAY[
        'id', 'entry_id', 'number', 'author_id', 'reason', 'database_user', 'created_at'
    ]) THEN
        RETURN NULL;
    END IF;
    INSERT INTO kb_revision SELECT missing.* FROM jsonb_populate_record(
        NULL::kb_revision,
        entry || jsonb_build_object(
            'id', nextval(pg_get_serial_sequence('kb_revision', 'id')),
            'entry_id', NEW.id,
            'number', coalesce(newest.number, 0) + 1,
            'author_id', NULL,
            'reason', 'Written outside of the services.',
            'database_user', session_user,
            'created_at', clock_timestamp()
        )
    ) missing;
    RETURN NULL;
END $$;

DO $$ BEGIN
    EXECUTE format(
        'ALTER FUNCTION kb_record_entry() SET search_path = %I, pg_temp', current_schema()
    );
END $$;

CREATE CONSTRAINT TRIGGER kb_entry_recorded AFTER INSERT OR UPDATE ON kb_entry
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION kb_record_entry();

CREATE FUNCTION kb_refuse_entry_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'entry % keeps its knowledge base and its origin', OLD.id
        USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TRIGGER kb_entry_no_move BEFORE UPDATE ON kb_entry FOR EACH ROW
    WHEN (OLD.knowledge_base_id <> NEW.knowledge_base_id OR OLD.origin <> NEW.origin)
    EXECUTE FUNCTION kb_refuse_entry_move();

-- The trigger above writes what is missing.
UPDATE kb_entry SET id = id WHERE id IN (
    SELECT e.id FROM kb_entry e LEFT JOIN LATERAL (
        SELECT * FROM kb_revision r WHERE r.entry_id = e.id ORDER BY number DESC LIMIT 1
    ) r ON true
    WHERE (e.question, e.text, e.state, e.confidence, e.valid_until)
        IS DISTINCT FROM (r.question, r.text, r.state, r.confidence, r.valid_until)
);
"""

UNRECORD = """
DROP TRIGGER kb_entry_no_move ON kb_entry;
DROP TRIGGER kb_entry_recorded ON kb_entry;
DROP FUNCTION kb_refuse_entry_move();
DROP FUNCTION kb_record_entry();
"""


class Migration(migrations.Migration):
    dependencies = [("kb", "0007_keep_the_whole_history")]

    operations = [
        migrations.RunSQL(BACKFILL, migrations.RunSQL.noop),
        migrations.RunSQL(RECORD, UNRECORD),
    ]
