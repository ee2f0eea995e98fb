-- What a system that keeps a copy of answers and entries has to know.

-- ENTRIES: each revision but the first. Its knowledge base, also where who wrote it may not
-- see the entry any more.
CREATE FUNCTION integrations_note_revision() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM integrations_note_event('entry.changed',
        (SELECT knowledge_base_id FROM kb_entry WHERE id = NEW.entry_id),
        jsonb_build_object(
            'entry', NEW.entry_id, 'revision', NEW.number, 'state', NEW.state));
    RETURN NULL;
END $$;
CREATE TRIGGER event_changed AFTER INSERT ON kb_revision FOR EACH ROW
    WHEN (NEW.number > 1) EXECUTE FUNCTION integrations_note_revision();

-- VOTES
CREATE FUNCTION integrations_note_vote() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM integrations_note_event('answer.voted',
        (SELECT knowledge_base_id FROM qa_answer WHERE id = NEW.answer_id),
        jsonb_build_object('answer', NEW.answer_id, 'vote', NEW.id,
            'rating', CASE WHEN NEW.is_up THEN 'up' ELSE 'down' END,
            'reasons', to_jsonb(NEW.reasons)));
    RETURN NULL;
END $$;
CREATE TRIGGER event_voted AFTER INSERT ON qa_vote FOR EACH ROW
    EXECUTE FUNCTION integrations_note_vote();
CREATE TRIGGER event_voted_again AFTER UPDATE ON qa_vote FOR EACH ROW
    WHEN ((NEW.is_up, NEW.reasons) IS DISTINCT FROM (OLD.is_up, OLD.reasons))
    EXECUTE FUNCTION integrations_note_vote();

-- JOBS that somebody asked for: an import, an export, a calibration.
CREATE FUNCTION integrations_note_done() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM integrations_note_event('job.succeeded', NULL,
        jsonb_build_object('job', NEW.id, 'kind', NEW.kind));
    RETURN NULL;
END $$;
CREATE TRIGGER event_succeeded AFTER UPDATE ON jobs_job FOR EACH ROW
    WHEN (NEW.state = 'succeeded' AND OLD.state <> 'succeeded'
        AND NEW.owner_id IS NOT NULL)
    EXECUTE FUNCTION integrations_note_done();
