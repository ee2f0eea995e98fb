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
