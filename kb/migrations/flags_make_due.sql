-- A flag ends as a doubt of voters does, but not where the entry goes to review: nobody has
-- looked at it yet.
CREATE OR REPLACE FUNCTION kb_keep_upkeep() RETURNS trigger LANGUAGE plpgsql AS $$
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
