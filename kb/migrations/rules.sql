-- What the tables of kb keep by themselves, whoever writes: rules that no service can forget.
-- Run after the tables were made; part of the migration, so never changed once released.

-- COLUMNS
-- Distances are compared with thresholds for unit vectors, and a zero vector has none.
-- MAIN keeps a vector of up to about 2,000 dimensions inside its row, where exact search
-- reads it without a look-up in a second table; a longer one is still moved out.
ALTER TABLE kb_entryembedding
    ALTER COLUMN vector SET STORAGE MAIN,
    ADD CONSTRAINT entry_embedding_is_unit
        CHECK (vector_norm(vector) BETWEEN 0.999 AND 1.001);

-- HALF-PRECISION VECTORS
-- What is deleted from the table that they are rounded from is deleted here, by whatever
-- statement.
ALTER TABLE kb_halfvector
    ALTER COLUMN half SET STORAGE MAIN,
    ADD CONSTRAINT half_vector_of_embedding FOREIGN KEY (embedding_id)
        REFERENCES kb_entryembedding (id) ON DELETE CASCADE;

CREATE FUNCTION kb_keep_half_vectors() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO kb_halfvector (embedding_id, entry_id, model_id, half)
    SELECT id, entry_id, model_id, vector::halfvec FROM written
    ON CONFLICT (embedding_id) DO UPDATE
        SET entry_id = excluded.entry_id, model_id = excluded.model_id,
            half = excluded.half;
    RETURN NULL;
END
$$;

CREATE TRIGGER keep_inserted_half_vectors AFTER INSERT ON kb_entryembedding
    REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION kb_keep_half_vectors();
CREATE TRIGGER keep_updated_half_vectors AFTER UPDATE ON kb_entryembedding
    REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION kb_keep_half_vectors();

-- PLANS OF IMPORTS
-- Who deletes an import, or an entry, need not see all that is planned: it goes with them.
ALTER TABLE kb_plannedentry
    ADD CONSTRAINT planned_entry_of_import FOREIGN KEY (import_run_id)
        REFERENCES kb_import (id) ON DELETE CASCADE,
    ADD CONSTRAINT planned_entry_of_entry FOREIGN KEY (entry_id)
        REFERENCES kb_entry (id) ON DELETE CASCADE;

-- UPKEEP
-- The dates follow from the entry alone. An insert is served by the statement, for
-- imports insert hundreds of rows at a time; an update only where one of the columns that
-- count has changed. 30 days: kb.entries.due.EXPIRY_NOTICE.
CREATE FUNCTION kb_review_due(state text, verified_at timestamptz, days integer)
RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN state = 'verified' THEN verified_at + days * interval '24 hours' END
$$;

CREATE FUNCTION kb_expiry_notice(state text, valid_until timestamptz)
RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN state NOT IN ('draft', 'retired')
        THEN valid_until - 30 * interval '24 hours' END
$$;

CREATE FUNCTION kb_begin_upkeep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO kb_upkeep (entry_id, waiting_since, review_due, expiry_notice_at)
    SELECT e.id,
        CASE WHEN e.state IN ('in_review', 'needs_review') THEN now() END,
        kb_review_due(e.state, e.verified_at,
            coalesce(e.review_interval_days, b.review_interval_days)),
        kb_expiry_notice(e.state, e.valid_until)
    FROM fresh e JOIN kb_knowledgebase b ON b.id = e.knowledge_base_id;
    RETURN NULL;
END $$;

CREATE TRIGGER kb_entry_begin_upkeep AFTER INSERT ON kb_entry
    REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION kb_begin_upkeep();

-- A postponement and a doubt of voters end with the state or the verification that they were
-- about: who verifies has looked at it. So does a flag, but not where the entry goes to review:
-- nobody has looked at it yet.
CREATE FUNCTION kb_keep_upkeep() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_anew boolean := (NEW.state, NEW.verified_at)
        IS DISTINCT FROM (OLD.state, OLD.verified_at);
BEGIN
    UPDATE kb_upkeep SET
        waiting_since = CASE WHEN NEW.state IN ('in_review', 'needs_review')
            THEN coalesce(waiting_since, now()) END,
        review_due = kb_review_due(NEW.state, NEW.verified_at,
            coalesce(NEW.review_interval_days, (
                SELECT review_interval_days FROM kb_knowledgebase
                WHERE id = NEW.knowledge_base_id))),
        expiry_notice_at = kb_expiry_notice(NEW.state, NEW.valid_until),
        doubted_since = CASE WHEN NOT is_anew THEN doubted_since END,
        flagged_since = CASE WHEN NOT is_anew OR NEW.state = 'needs_review'
            THEN flagged_since END,
        postponed_until = CASE WHEN NOT is_anew THEN postponed_until END,
        postponed_by_id = CASE WHEN NOT is_anew THEN postponed_by_id END
    WHERE entry_id = NEW.id;
    RETURN NULL;
END $$;

CREATE TRIGGER kb_entry_keep_upkeep AFTER UPDATE ON kb_entry
    FOR EACH ROW WHEN (
        (NEW.state, NEW.verified_at, NEW.valid_until, NEW.review_interval_days,
         NEW.knowledge_base_id)
        IS DISTINCT FROM
        (OLD.state, OLD.verified_at, OLD.valid_until, OLD.review_interval_days,
         OLD.knowledge_base_id))
    EXECUTE FUNCTION kb_keep_upkeep();

-- HISTORY
-- An UPDATE is refused at once. A DELETE is judged when the transaction ends: it may
-- stand only if the entry is gone too, which is how Django (children first) and the
-- database (parent first) both erase an entry; a lone revision is never lost. It is judged
-- by all entries there are, whoever reads then: with the rights of the tables' owner.
CREATE FUNCTION kb_refuse_revision_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'revision % of entry % is immutable', OLD.number, OLD.entry_id
        USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TRIGGER kb_revision_no_update BEFORE UPDATE ON kb_revision
    FOR EACH ROW EXECUTE FUNCTION kb_refuse_revision_update();

CREATE FUNCTION kb_refuse_revision_delete() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER AS $$
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

-- Judged when the transaction ends, so that a service may write entry and revision in any
-- order, and one that wrote both is not recorded twice. An entry contains what its newest
-- revision says, column by column of the same name, or the missing revision is written.
-- With the rights of the tables' owner, whoever writes.
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

-- pg_temp last, lest a temporary table is taken for one of ours.
DO $$ DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['kb_refuse_revision_delete', 'kb_record_entry'] LOOP
        EXECUTE format(
            'ALTER FUNCTION %I() SET search_path = %I, pg_temp', name, current_schema()
        );
    END LOOP;
END $$;

-- ROW-LEVEL SECURITY
-- A statement that forgets to say for whom it reads finds nothing. The backend of
-- accounts.postgresql tells in application_name who reads. What may be read is said once,
-- in nescio_audiences, and is computed once for a statement: a sub-select there, unlike a
-- bare call, is not computed for each row.
--
-- Vectors are not under it. They tell no text, every search joins them to entries, and a
-- policy on them would ask for the entry of each of many thousands.
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
        MESSAGE = 'No reader is set: knowledge is read on behalf of somebody.',
        HINT = 'In code: accounts.acting. In psql: SET application_name = '
            '''nescio:user:'' and the id of a user, or ''nescio:everything''.';
END $$;

CREATE FUNCTION nescio_sees_all() RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
    label constant text := current_setting('application_name');
BEGIN
    IF label LIKE 'nescio:user:%' THEN
        RETURN EXISTS (
            SELECT FROM auth_user u WHERE u.id = substr(label, 13)::bigint
                AND u.is_active AND u.is_superuser
        );
    END IF;
    RETURN label IN ('nescio:everything', 'nescio:owner');
END $$;

ALTER TABLE kb_entry ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_entry_audience ON kb_entry USING (audience_id = ANY ((SELECT nescio_audiences())::bigint[]));

ALTER TABLE kb_document ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_document_audience ON kb_document USING (audience_id = ANY ((SELECT nescio_audiences())::bigint[]));

ALTER TABLE kb_import ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_import_audience ON kb_import USING (audience_id = ANY ((SELECT nescio_audiences())::bigint[]));

-- What belongs to an entry or a document is seen with it: their own policies hold inside.
ALTER TABLE kb_section ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_section_document ON kb_section
    USING (EXISTS (SELECT FROM kb_document d WHERE d.id = document_id));

ALTER TABLE kb_flag ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_flag_entry ON kb_flag
    USING (EXISTS (SELECT FROM kb_entry e WHERE e.id = entry_id));

ALTER TABLE kb_comment ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_comment_entry ON kb_comment
    USING (EXISTS (SELECT FROM kb_entry e WHERE e.id = entry_id));

ALTER TABLE kb_wording ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_wording_entry ON kb_wording
    USING (EXISTS (SELECT FROM kb_entry e WHERE e.id = entry_id));

-- What a plan says of an entry is seen with it, what it would make with the import.
ALTER TABLE kb_plannedentry ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_plannedentry_entry ON kb_plannedentry USING (
    EXISTS (SELECT FROM kb_entry e WHERE e.id = entry_id)
    OR entry_id IS NULL AND EXISTS (SELECT FROM kb_import i WHERE i.id = import_run_id)
);

-- What an entry was is not opened with what it is: a revision is seen by who may see its
-- entry now and belongs to the audience that the revision itself was of. One whose audience
-- is gone, or was withheld from who exported it, is left to those who see all there is.
ALTER TABLE kb_revision ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_revision_entry ON kb_revision USING (
    EXISTS (SELECT FROM kb_entry e WHERE e.id = entry_id)
    AND (audience_id = ANY ((SELECT nescio_audiences())::bigint[])
        OR (SELECT nescio_sees_all()))
);

-- Whether a revision may be read by somebody is asked without reading it: no word in it.
CREATE VIEW kb_revisionoutline AS
SELECT id, entry_id, number, audience_id FROM kb_revision;

-- A proposal says what its entry said first.
ALTER TABLE kb_proposal ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_proposal_entry ON kb_proposal USING (
    EXISTS (SELECT FROM kb_entry e WHERE e.id = entry_id)
    AND ((SELECT nescio_sees_all()) OR NOT EXISTS (
        SELECT FROM kb_revisionoutline r
        WHERE r.entry_id = kb_proposal.entry_id AND (r.audience_id IS NULL
            OR r.audience_id <> ALL ((SELECT nescio_audiences())::bigint[]))
    ))
);

-- A source is seen by who belongs to every audience of its rules; what belongs to it, with
-- it. The rules are looked up with the rights of the tables' owner: by the reader's own,
-- those of hidden audiences would not be there.
CREATE FUNCTION kb_source_audiences(source bigint) RETURNS bigint[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT coalesce(array_agg(audience_id), '{}') FROM kb_followrule
    WHERE source_id = source
$$;
ALTER TABLE kb_followedsource ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_followedsource_audiences ON kb_followedsource
    USING (kb_source_audiences(id) <@ (SELECT nescio_audiences())::bigint[]);
ALTER TABLE kb_followrule ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_followrule_source ON kb_followrule
    USING (audience_id = ANY ((SELECT nescio_audiences())::bigint[])
        AND EXISTS (SELECT FROM kb_followedsource s WHERE s.id = source_id));
ALTER TABLE kb_followeddocument ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_followeddocument_source ON kb_followeddocument
    USING (EXISTS (SELECT FROM kb_followedsource s WHERE s.id = source_id));

-- VIEWS
-- Full text is searched through a view with the same condition: PostgreSQL asks a policy
-- before any function that is not marked as leakproof, as @@ is not, and so would never use
-- the index of the words. A view of its owner's has no policy below it.
--
-- Why nothing could be said is found out beyond what the asker may see
-- (kb/search/related.py), by the second view: it holds no word.
CREATE VIEW kb_entrywords AS
SELECT id, knowledge_base_id, audience_id, state, confidence, valid_until, language,
       search_vector
FROM kb_entry WHERE audience_id = ANY ((SELECT nescio_audiences())::bigint[]);

CREATE VIEW kb_entryoutline AS
SELECT id, knowledge_base_id, audience_id, state, confidence, valid_until FROM kb_entry;
