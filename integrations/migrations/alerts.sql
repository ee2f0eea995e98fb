-- What somebody may be mailed about is written whether or not an endpoint wants it: a few
-- events a day.
CREATE OR REPLACE FUNCTION integrations_note_event(kind text, base bigint, about jsonb)
RETURNS void LANGUAGE sql AS $$
    INSERT INTO integrations_event (type, knowledge_base_id, data, key, created_at)
    SELECT kind, base, about, '', clock_timestamp()
    WHERE kind IN ('job.failed', 'source.failed', 'delivery.failed', 'drift.found',
            'escalation.raised', 'gap.opened')
        OR EXISTS (
            SELECT FROM integrations_endpoint
            WHERE is_active AND kind = ANY (types)
                AND (knowledge_base_id IS NULL OR knowledge_base_id = base)
        )
$$;

-- SOURCES: once, until it was read again.
CREATE FUNCTION integrations_note_source() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM integrations_note_event('source.failed', NEW.knowledge_base_id,
        jsonb_build_object('source', NEW.id));
    RETURN NULL;
END $$;
CREATE TRIGGER event_failed AFTER UPDATE ON kb_followedsource FOR EACH ROW
    WHEN (NEW.error <> '' AND OLD.error = '')
    EXECUTE FUNCTION integrations_note_source();

-- DELIVERIES: what was given up, and would have been seen. That a message about that was
-- given up is no event: two endpoints that are down would go on for ever.
CREATE FUNCTION integrations_note_delivery() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM integrations_event
            WHERE id = NEW.event_id AND type = 'delivery.failed') THEN
        RETURN NULL;
    END IF;
    PERFORM integrations_note_event('delivery.failed',
        (SELECT knowledge_base_id FROM integrations_event WHERE id = NEW.event_id),
        jsonb_build_object('delivery', NEW.id, 'endpoint', NEW.endpoint_id));
    RETURN NULL;
END $$;
CREATE TRIGGER event_given_up AFTER UPDATE ON integrations_delivery FOR EACH ROW
    WHEN (NEW.state = 'failed' AND OLD.state = 'pending' AND NEW.next_attempt_at IS NULL)
    EXECUTE FUNCTION integrations_note_delivery();
