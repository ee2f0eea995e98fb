-- Beside who changed whose access (accounts/migrations/audit.sql): who changed what decides
-- answers, whose access was used, and who is to deal with what.
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON qa_policy
    FOR EACH ROW EXECUTE FUNCTION accounts_audit(
        'policy', 'knowledge_base_id kb_knowledgebase slug');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON qa_refusalwording
    FOR EACH ROW EXECUTE FUNCTION accounts_audit(
        'refusal wording', 'knowledge_base_id kb_knowledgebase slug');
-- Why a version was activated against its test cases is worth more than a row of history.
CREATE TRIGGER audit AFTER INSERT ON qa_policyactivation
    FOR EACH ROW WHEN (NEW.reason <> '') EXECUTE FUNCTION accounts_audit(
        'policy activation', 'knowledge_base_id kb_knowledgebase slug',
        'policy_id qa_policy name');

-- Whose access was used: a service's question for somebody.
CREATE FUNCTION qa_audit_service() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO accounts_auditentry (at, actor, reader, kind, action, subject, changes)
    VALUES (
        clock_timestamp(), NEW.service, current_setting('application_name'),
        'question for', 'insert',
        coalesce((SELECT username FROM auth_user WHERE id = NEW.asker_id), ''),
        jsonb_build_object('answer', jsonb_build_array(NULL, NEW.id))
    );
    RETURN NULL;
END $$;
CREATE TRIGGER audit_service AFTER INSERT ON qa_answer FOR EACH ROW
    WHEN (NEW.service <> '') EXECUTE FUNCTION qa_audit_service();

-- Who was to deal with what, and who put it off: in the audit, whatever path it took.
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON qa_inboxmark
    FOR EACH ROW EXECUTE FUNCTION accounts_audit('inbox', 'user_id auth_user username');

-- What keeps its assignee itself: no more than the change of that column is written down,
-- for such a row holds words of its asker. The arguments: what a row is, and the column.
CREATE FUNCTION qa_audit_assignee() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    reader constant text := current_setting('application_name');
    before jsonb := to_jsonb(OLD) -> TG_ARGV[1];
    after jsonb := to_jsonb(NEW) -> TG_ARGV[1];
BEGIN
    INSERT INTO accounts_auditentry (at, actor, reader, kind, action, subject, changes)
    VALUES (
        clock_timestamp(),
        coalesce((
            SELECT username FROM auth_user
            WHERE id = substring(reader FROM '^nescio:user:([0-9]+)$')::bigint
        ), ''),
        reader, 'inbox', 'update',
        concat_ws(', ', TG_ARGV[0] || ' ' || NEW.id,
            (SELECT username FROM auth_user WHERE id = (after #>> '{}')::bigint)),
        jsonb_build_object(TG_ARGV[1], jsonb_build_array(before, after))
    );
    RETURN NULL;
END $$;

CREATE TRIGGER audit AFTER UPDATE OF assignee_id ON qa_escalation FOR EACH ROW
    WHEN (OLD.assignee_id IS DISTINCT FROM NEW.assignee_id)
    EXECUTE FUNCTION qa_audit_assignee('escalation', 'assignee_id');
CREATE TRIGGER audit AFTER UPDATE OF assignee_id ON qa_review FOR EACH ROW
    WHEN (OLD.assignee_id IS DISTINCT FROM NEW.assignee_id)
    EXECUTE FUNCTION qa_audit_assignee('review', 'assignee_id');
CREATE TRIGGER audit AFTER UPDATE OF owner_id ON qa_gap FOR EACH ROW
    WHEN (OLD.owner_id IS DISTINCT FROM NEW.owner_id)
    EXECUTE FUNCTION qa_audit_assignee('gap', 'owner_id');
