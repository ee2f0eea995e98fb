-- Who changed what of knowledge that opens access or says what is answered, as
-- accounts/migrations/audit.sql watches who changed whose access.
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON kb_audience
    FOR EACH ROW EXECUTE FUNCTION accounts_audit('audience');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON kb_audience_groups
    FOR EACH ROW EXECUTE FUNCTION accounts_audit(
        'audience group', 'audience_id kb_audience slug', 'group_id auth_group name');
CREATE TRIGGER audit AFTER INSERT OR DELETE ON kb_synonym FOR EACH ROW
    EXECUTE FUNCTION accounts_audit('synonym', 'knowledge_base_id kb_knowledgebase slug');

-- Who deleted whose comment, without its words.
CREATE FUNCTION kb_audit_comment() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    reader constant text := current_setting('application_name');
BEGIN
    INSERT INTO accounts_auditentry (at, actor, reader, kind, action, subject, changes)
    VALUES (
        clock_timestamp(),
        coalesce((
            SELECT username FROM auth_user
            WHERE id = substring(reader FROM '^nescio:user:([0-9]+)$')::bigint
        ), ''),
        reader, 'comment', 'delete',
        concat_ws(', ', 'entry ' || OLD.entry_id,
            (SELECT username FROM auth_user WHERE id = OLD.author_id)),
        jsonb_build_object('comment', jsonb_build_array(OLD.id, NULL))
    );
    RETURN NULL;
END $$;
CREATE TRIGGER audit AFTER DELETE ON kb_comment
    FOR EACH ROW EXECUTE FUNCTION kb_audit_comment();

-- Who let which entry answer another question, or no longer, without its words.
CREATE FUNCTION kb_audit_wording() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    reader constant text := current_setting('application_name');
    is_new constant boolean := TG_OP = 'INSERT';
BEGIN
    INSERT INTO accounts_auditentry (at, actor, reader, kind, action, subject, changes)
    VALUES (
        clock_timestamp(),
        coalesce((
            SELECT username FROM auth_user
            WHERE id = substring(reader FROM '^nescio:user:([0-9]+)$')::bigint
        ), ''),
        reader, 'wording', CASE WHEN is_new THEN 'insert' ELSE 'delete' END,
        'entry ' || coalesce(NEW.entry_id, OLD.entry_id),
        jsonb_build_object('wording', jsonb_build_array(OLD.id, NEW.id))
    );
    RETURN NULL;
END $$;
CREATE TRIGGER audit AFTER INSERT OR DELETE ON kb_wording
    FOR EACH ROW EXECUTE FUNCTION kb_audit_wording();

-- Who follows, changes and unfollows what, and who is to see it. Without the words of
-- sources that not every reader of the audit may see; what a check writes is no change.
CREATE FUNCTION kb_audit_source() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    before jsonb := coalesce(to_jsonb(OLD), '{}');
    after jsonb := coalesce(to_jsonb(NEW), '{}');
    whole jsonb := before || after;
    reader constant text := current_setting('application_name');
    changed jsonb;
BEGIN
    SELECT jsonb_object_agg(key, CASE
            WHEN key IN ('name', 'address', 'credential', 'group') THEN '["…", "…"]'
            ELSE jsonb_build_array(b.value, a.value) END)
        INTO changed
        FROM jsonb_each(before) b FULL JOIN jsonb_each(after) a USING (key)
        WHERE a.value IS DISTINCT FROM b.value AND key IN (
            'name', 'kind', 'address', 'credential', 'group', 'every_hours', 'is_active',
            'owner_id', 'audience_id');
    IF changed IS NULL THEN
        RETURN NULL;
    END IF;
    INSERT INTO accounts_auditentry (at, actor, reader, kind, action, subject, changes)
    VALUES (
        clock_timestamp(),
        coalesce((
            SELECT username FROM auth_user
            WHERE id = substring(reader FROM '^nescio:user:([0-9]+)$')::bigint
        ), ''),
        reader, TG_ARGV[0], lower(TG_OP),
        'source ' || coalesce(whole ->> 'source_id', whole ->> 'id'), changed
    );
    RETURN NULL;
END $$;
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON kb_followedsource
    FOR EACH ROW EXECUTE FUNCTION kb_audit_source('source');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON kb_followrule
    FOR EACH ROW EXECUTE FUNCTION kb_audit_source('source audience');
