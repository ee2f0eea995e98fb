-- What the tables of qa keep by themselves, whoever writes: rules that no service can forget.
-- Run after the tables were made; part of the migration, so never changed once released.

-- COLUMNS
-- Evidence is null to those from whom it is hidden (a LEFT JOIN below a policy), and never
-- in the table.
ALTER TABLE qa_answerevidence
    ALTER COLUMN entry_id SET NOT NULL,
    ALTER COLUMN revision_id SET NOT NULL;

-- POLICIES
-- A version is what answers were decided by: only which one is active, and that its maker
-- was deleted, may change.
CREATE FUNCTION qa_refuse_policy_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF to_jsonb(NEW) - '{is_active,created_by_id}'::text[]
        IS DISTINCT FROM to_jsonb(OLD) - '{is_active,created_by_id}'::text[] THEN
        RAISE EXCEPTION 'policy % v% is immutable; make a new version',
            OLD.name, OLD.version
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER qa_policy_no_update BEFORE UPDATE ON qa_policy
    FOR EACH ROW EXECUTE FUNCTION qa_refuse_policy_update();

-- What decided when is history: only that its author was deleted may change.
CREATE FUNCTION qa_refuse_activation_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR to_jsonb(NEW) - 'by_id'
        IS DISTINCT FROM to_jsonb(OLD) - 'by_id' THEN
        RAISE EXCEPTION 'activation % of policy % is immutable', OLD.id, OLD.policy_id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER qa_policyactivation_no_change
    BEFORE UPDATE OR DELETE ON qa_policyactivation
    FOR EACH ROW EXECUTE FUNCTION qa_refuse_activation_change();

-- COUNTS
-- A changed vote is one taken back and one given.
CREATE FUNCTION qa_note_vote_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND NEW.is_up = OLD.is_up THEN
        RETURN NULL;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO qa_votechange (answer_id, up, down) VALUES
            (OLD.answer_id, -(OLD.is_up::int), -((NOT OLD.is_up)::int));
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO qa_votechange (answer_id, up, down) VALUES
            (NEW.answer_id, NEW.is_up::int, (NOT NEW.is_up)::int);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER qa_vote_note_change AFTER INSERT OR UPDATE OR DELETE ON qa_vote
    FOR EACH ROW EXECUTE FUNCTION qa_note_vote_change();

-- Today's questions are counted today: nothing is written while a question is answered.
CREATE FUNCTION qa_note_changed_days(moments timestamptz[]) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO qa_changedday (day)
    SELECT DISTINCT (moment AT TIME ZONE 'UTC')::date FROM unnest(moments) moment
    WHERE moment < date_trunc('day', now(), 'UTC')
$$;

CREATE FUNCTION qa_note_changed_answers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM qa_note_changed_days(ARRAY(SELECT created_at FROM changed));
    RETURN NULL;
END $$;

CREATE FUNCTION qa_note_moved_answers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM qa_note_changed_days(
        ARRAY(SELECT created_at FROM before UNION SELECT created_at FROM changed)
    );
    RETURN NULL;
END $$;

CREATE FUNCTION qa_note_changed_votes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM qa_note_changed_days(ARRAY(
        SELECT a.created_at FROM changed v JOIN qa_answer a ON a.id = v.answer_id
    ));
    RETURN NULL;
END $$;

CREATE TRIGGER qa_answer_note_added AFTER INSERT ON qa_answer
    REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION qa_note_changed_answers();
CREATE TRIGGER qa_answer_note_changed AFTER UPDATE ON qa_answer
    REFERENCING OLD TABLE AS before NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION qa_note_moved_answers();
CREATE TRIGGER qa_answer_note_deleted AFTER DELETE ON qa_answer
    REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION qa_note_changed_answers();
CREATE TRIGGER qa_vote_note_added AFTER INSERT ON qa_vote
    REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION qa_note_changed_votes();
CREATE TRIGGER qa_vote_note_turned AFTER UPDATE ON qa_vote
    REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION qa_note_changed_votes();
CREATE TRIGGER qa_vote_note_deleted AFTER DELETE ON qa_vote
    REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION qa_note_changed_votes();

-- A day is counted again once an answer of it was reviewed: gates in shadow are shown beside
-- what experts said of the answers that they would have refused.
CREATE FUNCTION qa_note_reviewed_day() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    reviewed uuid := CASE WHEN TG_OP = 'DELETE' THEN OLD.answer_id ELSE NEW.answer_id END;
BEGIN
    PERFORM qa_note_changed_days(ARRAY(
        SELECT created_at FROM qa_answer WHERE id = reviewed));
    RETURN NULL;
END $$;

CREATE TRIGGER qa_review_note_made AFTER INSERT ON qa_review FOR EACH ROW
    WHEN (NEW.state = 'done') EXECUTE FUNCTION qa_note_reviewed_day();
CREATE TRIGGER qa_review_note_changed AFTER UPDATE ON qa_review FOR EACH ROW
    WHEN (NEW.state = 'done' OR OLD.state = 'done')
    EXECUTE FUNCTION qa_note_reviewed_day();
CREATE TRIGGER qa_review_note_deleted AFTER DELETE ON qa_review FOR EACH ROW
    WHEN (OLD.state = 'done') EXECUTE FUNCTION qa_note_reviewed_day();

-- THE PAST
-- For questions as of a moment: kb/migrations/past.sql.
CREATE TRIGGER keep_former_row AFTER INSERT OR UPDATE OR DELETE ON qa_refusalwording
    FOR EACH ROW EXECUTE FUNCTION kb_keep_former_row();

-- ROW-LEVEL SECURITY
-- One's own answer stays as one got it; what an entry said is otherwise read only by those
-- who may see the entry now. The database tries a table's policies from the last name to
-- the first: kb_revision_entry before this one, for whether a revision is in one's own
-- evidence takes a look at every answer that ever used it (0.3 seconds for one that 5,000
-- did).
CREATE FUNCTION nescio_user() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT substring(current_setting('application_name') FROM '^nescio:user:([0-9]+)$')::bigint
$$;

CREATE POLICY kb_revision_by_own_evidence ON kb_revision FOR SELECT USING (
    EXISTS (
        SELECT FROM qa_answerevidence e JOIN qa_answer a ON a.id = e.answer_id
        WHERE e.revision_id = kb_revision.id AND a.asker_id = (SELECT nescio_user())
    )
);
