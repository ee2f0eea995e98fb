-- What happened, for endpoints that want it: written in the transaction of what it reports,
-- whichever path that took. Part of the migration, so never changed once released.

-- Nothing is written where nobody wants it: one look at a table of a few rows. What somebody
-- may be mailed about is written whether or not an endpoint wants it: a few events a day.
CREATE FUNCTION integrations_note_event(kind text, base bigint, about jsonb)
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

-- ANSWERS: what people asked; no evaluation, and nothing asked again by itself.
CREATE FUNCTION integrations_note_refusal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM integrations_note_event('answer.refused', NEW.knowledge_base_id,
        jsonb_build_object('answer', NEW.id));
    RETURN NULL;
END $$;
CREATE TRIGGER event_refused AFTER INSERT ON qa_answer FOR EACH ROW
    WHEN (NEW.outcome = 'refused' AND NEW.channel IN ('api', 'page', 'command'))
    EXECUTE FUNCTION integrations_note_refusal();
CREATE TRIGGER event_refused_later AFTER UPDATE ON qa_answer FOR EACH ROW
    WHEN (NEW.outcome = 'refused' AND OLD.outcome <> 'refused'
        AND NEW.channel IN ('api', 'page', 'command'))
    EXECUTE FUNCTION integrations_note_refusal();

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

-- ESCALATIONS
CREATE FUNCTION integrations_note_escalation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM integrations_note_event(
        CASE WHEN NEW.state = 'open' THEN 'escalation.raised'
            ELSE 'escalation.replied' END,
        (SELECT knowledge_base_id FROM qa_answer WHERE id = NEW.answer_id),
        jsonb_build_object(
            'escalation', NEW.id, 'answer', NEW.answer_id, 'state', NEW.state));
    RETURN NULL;
END $$;
CREATE TRIGGER event_raised AFTER INSERT ON qa_escalation FOR EACH ROW
    WHEN (NEW.state = 'open') EXECUTE FUNCTION integrations_note_escalation();
CREATE TRIGGER event_replied AFTER UPDATE ON qa_escalation FOR EACH ROW
    WHEN (OLD.state IS DISTINCT FROM NEW.state)
    EXECUTE FUNCTION integrations_note_escalation();

-- GAPS
CREATE FUNCTION integrations_note_gap() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM integrations_note_event(
        CASE WHEN NEW.state = 'filled' THEN 'gap.filled' ELSE 'gap.opened' END,
        NEW.knowledge_base_id, jsonb_build_object('gap', NEW.id));
    RETURN NULL;
END $$;
CREATE TRIGGER event_opened AFTER INSERT ON qa_gap FOR EACH ROW
    WHEN (NEW.state = 'open') EXECUTE FUNCTION integrations_note_gap();
CREATE TRIGGER event_moved AFTER UPDATE ON qa_gap FOR EACH ROW
    WHEN (NEW.state <> OLD.state AND (
        NEW.state = 'filled'
        OR (NEW.state = 'open' AND OLD.state IN ('filled', 'dismissed'))))
    EXECUTE FUNCTION integrations_note_gap();

-- ENTRIES
CREATE FUNCTION integrations_note_verified() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM integrations_note_event('entry.verified', NEW.knowledge_base_id,
        jsonb_build_object('entry', NEW.id));
    RETURN NULL;
END $$;
CREATE TRIGGER event_verified AFTER INSERT ON kb_entry FOR EACH ROW
    WHEN (NEW.state = 'verified') EXECUTE FUNCTION integrations_note_verified();
CREATE TRIGGER event_verified_later AFTER UPDATE ON kb_entry FOR EACH ROW
    WHEN (NEW.state = 'verified'
        AND (NEW.state, NEW.verified_at) IS DISTINCT FROM (OLD.state, OLD.verified_at))
    EXECUTE FUNCTION integrations_note_verified();

-- Each revision but the first. Its knowledge base, also where who wrote it may not
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

-- CONFLICTS: of a pair that was resolved, too, once it is open again.
CREATE FUNCTION integrations_note_conflict() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM integrations_note_event('conflict.found',
        (SELECT knowledge_base_id FROM kb_entry WHERE id = NEW.first_id),
        jsonb_build_object('conflict', NEW.id, 'kind', NEW.kind,
            'entries', jsonb_build_array(NEW.first_id, NEW.second_id)));
    RETURN NULL;
END $$;
CREATE TRIGGER event_found AFTER INSERT ON kb_conflict FOR EACH ROW
    WHEN (NEW.state = 'open') EXECUTE FUNCTION integrations_note_conflict();
CREATE TRIGGER event_found_again AFTER UPDATE ON kb_conflict FOR EACH ROW
    WHEN (NEW.state = 'open' AND OLD.state <> 'open')
    EXECUTE FUNCTION integrations_note_conflict();

-- POLICIES
CREATE FUNCTION integrations_note_drift() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    version qa_policy;
BEGIN
    SELECT p.* INTO version FROM qa_policy p JOIN qa_certificate c ON c.policy_id = p.id
        WHERE c.id = NEW.certificate_id;
    PERFORM integrations_note_event('drift.found', version.knowledge_base_id,
        jsonb_build_object('reading', NEW.id, 'policy', version.id));
    RETURN NULL;
END $$;
CREATE TRIGGER event_drifted AFTER INSERT ON qa_driftreading FOR EACH ROW
    WHEN (NEW.has_drifted) EXECUTE FUNCTION integrations_note_drift();

CREATE FUNCTION integrations_note_activation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM integrations_note_event('policy.activated', NEW.knowledge_base_id,
        jsonb_build_object('policy', NEW.policy_id, 'replaced', NEW.replaced_id,
            'is_rollback', NEW.is_rollback));
    RETURN NULL;
END $$;
CREATE TRIGGER event_activated AFTER INSERT ON qa_policyactivation FOR EACH ROW
    EXECUTE FUNCTION integrations_note_activation();

-- JOBS
CREATE FUNCTION integrations_note_job() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM integrations_note_event('job.failed', NULL,
        jsonb_build_object('job', NEW.id, 'kind', NEW.kind));
    RETURN NULL;
END $$;
CREATE TRIGGER event_failed AFTER UPDATE ON jobs_job FOR EACH ROW
    WHEN (NEW.state = 'failed' AND OLD.state <> 'failed')
    EXECUTE FUNCTION integrations_note_job();

-- Those that somebody asked for: an import, an export, a calibration.
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

-- NOTICES
CREATE FUNCTION integrations_note_notice() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM integrations_note_event('notice.sent',
        (SELECT knowledge_base_id FROM qa_answer WHERE id = NEW.answer_id),
        jsonb_build_object('notice', NEW.id, 'kind', NEW.kind));
    RETURN NULL;
END $$;
CREATE TRIGGER event_sent AFTER INSERT ON qa_notice FOR EACH ROW
    EXECUTE FUNCTION integrations_note_notice();

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

-- ACCESS
-- Where events go is access: who set it is audited, what delivery writes is not.
CREATE TRIGGER audit AFTER INSERT OR DELETE
        OR UPDATE OF name, url, types, is_active, knowledge_base_id, owner_id, secret_seed
    ON integrations_endpoint
    FOR EACH ROW EXECUTE FUNCTION accounts_audit('webhook', 'owner_id auth_user username');

-- So is who lets which pages ask as whom.
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON integrations_widget
    FOR EACH ROW EXECUTE FUNCTION accounts_audit('widget', 'account_id auth_user username');
