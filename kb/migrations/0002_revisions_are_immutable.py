from django.db import migrations

# An UPDATE is refused at once. A DELETE is judged when the transaction ends: it may
# stand only if the entry is gone too, which is how Django (children first) and the
# database (parent first) both erase an entry; a lone revision is never lost.
FORWARD = """
CREATE FUNCTION kb_refuse_revision_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'revision % of entry % is immutable', OLD.number, OLD.entry_id
        USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TRIGGER kb_revision_no_update BEFORE UPDATE ON kb_revision
    FOR EACH ROW EXECUTE FUNCTION kb_refuse_revision_update();

CREATE FUNCTION kb_refuse_revision_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM kb_entry WHERE id = OLD.entry_id) THEN
        RAISE EXCEPTION 'revision % of entry % goes only with its entry',
            OLD.number, OLD.entry_id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER kb_revision_no_delete AFTER DELETE ON kb_revision
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION kb_refuse_revision_delete();
"""

BACKWARD = """
DROP TRIGGER kb_revision_no_delete ON kb_revision;
DROP TRIGGER kb_revision_no_update ON kb_revision;
DROP FUNCTION kb_refuse_revision_delete();
DROP FUNCTION kb_refuse_revision_update();
"""


class Migration(migrations.Migration):
    dependencies = [("kb", "0001_initial")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
