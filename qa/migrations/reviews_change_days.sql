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

-- What was counted before has no counts of gates in shadow, nor of models.
INSERT INTO qa_changedday (day) SELECT day FROM qa_countedday;
