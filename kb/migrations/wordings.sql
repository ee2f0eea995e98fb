-- What belongs to an entry is seen with it.
ALTER TABLE kb_wording ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_wording_entry ON kb_wording
    USING (EXISTS (SELECT FROM kb_entry e WHERE e.id = entry_id));

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
