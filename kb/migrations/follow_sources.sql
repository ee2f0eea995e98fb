-- A source is seen by who belongs to every audience of its rules; what belongs to it, with
-- it. The rules are looked up with the rights of the tables' owner: by the reader's own,
-- those of hidden audiences would not be there.
CREATE FUNCTION kb_source_audiences(source bigint) RETURNS bigint[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT coalesce(array_agg(audience_id), '{}') FROM kb_followrule
    WHERE source_id = source
$$;
ALTER TABLE kb_followedsource ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_followedsource_audiences ON kb_followedsource
    USING (kb_source_audiences(id) <@ (SELECT nescio_audiences())::bigint[]);
ALTER TABLE kb_followrule ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_followrule_source ON kb_followrule
    USING (audience_id = ANY ((SELECT nescio_audiences())::bigint[])
        AND EXISTS (SELECT FROM kb_followedsource s WHERE s.id = source_id));
ALTER TABLE kb_followeddocument ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_followeddocument_source ON kb_followeddocument
    USING (EXISTS (SELECT FROM kb_followedsource s WHERE s.id = source_id));

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
