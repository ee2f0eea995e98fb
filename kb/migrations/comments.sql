-- What belongs to an entry is seen with it.
ALTER TABLE kb_comment ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_comment_entry ON kb_comment
    USING (EXISTS (SELECT FROM kb_entry e WHERE e.id = entry_id));

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
