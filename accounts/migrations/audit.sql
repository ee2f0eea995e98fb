-- Who changed whose access, whatever path the change took: page, REST, command or psql.
-- A table is watched by a trigger whose first argument names what a row of it is, and each
-- further one a column that refers to a row, with that row's table and name:
--     EXECUTE FUNCTION accounts_audit('membership', 'user_id auth_user username')
-- With the rights of the tables' owner: the application's role may only read the entries.
CREATE FUNCTION accounts_audit() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    before jsonb := coalesce(to_jsonb(OLD), '{}');
    after jsonb := coalesce(to_jsonb(NEW), '{}');
    whole jsonb := before || after;
    reader constant text := current_setting('application_name');
    changed jsonb;
    reference text;
    part text[];
    name text;
    names text[] := '{}';
BEGIN
    SELECT jsonb_object_agg(key, CASE WHEN key = 'password' THEN '["…", "…"]'
            ELSE jsonb_build_array(b.value, a.value) END)
        INTO changed
        FROM jsonb_each(before) b FULL JOIN jsonb_each(after) a USING (key)
        WHERE a.value IS DISTINCT FROM b.value
            AND key NOT IN ('id', 'last_login', 'digest', 'token_key');
    IF changed IS NULL THEN
        RETURN NULL;
    END IF;
    FOREACH reference IN ARRAY TG_ARGV[1:] LOOP
        part := string_to_array(reference, ' ');
        EXECUTE format('SELECT %I FROM %I WHERE id = $1', part[3], part[2])
            INTO name USING (whole ->> part[1])::bigint;
        names := names || coalesce(name, whole ->> part[1]);
        changed := changed - part[1];
    END LOOP;
    names := names || coalesce(
        whole ->> 'username', whole ->> 'slug', nullif(whole ->> 'name', '')
    ) || (whole ->> 'version');
    INSERT INTO accounts_auditentry (at, actor, reader, kind, action, subject, changes)
    VALUES (
        clock_timestamp(),
        coalesce((
            SELECT username FROM auth_user
            WHERE id = substring(reader FROM '^nescio:user:([0-9]+)$')::bigint
        ), ''),
        reader, TG_ARGV[0], lower(TG_OP), left(array_to_string(names, ', '), 500), changed
    );
    RETURN NULL;
END $$;

CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON auth_user
    FOR EACH ROW EXECUTE FUNCTION accounts_audit('user');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON auth_group
    FOR EACH ROW EXECUTE FUNCTION accounts_audit('group');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON auth_user_groups
    FOR EACH ROW EXECUTE FUNCTION accounts_audit(
        'membership', 'user_id auth_user username', 'group_id auth_group name');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON auth_user_user_permissions
    FOR EACH ROW EXECUTE FUNCTION accounts_audit(
        'permission', 'user_id auth_user username',
        'permission_id auth_permission codename');
-- What a migration grants to the roles is the version's doing, nobody's.
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON auth_group_permissions
    FOR EACH ROW WHEN (current_setting('application_name') <> 'nescio:owner')
    EXECUTE FUNCTION accounts_audit(
        'permission', 'group_id auth_group name',
        'permission_id auth_permission codename');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON accounts_apitoken
    FOR EACH ROW EXECUTE FUNCTION accounts_audit('token', 'user_id auth_user username');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON accounts_providergroup
    FOR EACH ROW EXECUTE FUNCTION accounts_audit('provider group');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON accounts_providergroup_groups
    FOR EACH ROW EXECUTE FUNCTION accounts_audit(
        'provider group', 'providergroup_id accounts_providergroup name',
        'group_id auth_group name');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON accounts_provideraccount
    FOR EACH ROW EXECUTE FUNCTION accounts_audit(
        'sign-in account', 'user_id auth_user username');

-- The application's role adds no entries itself; by this function it adds one of what was
-- undone, and the function says by whom.
CREATE FUNCTION accounts_audit_undone(subject text, staying int) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $$
    INSERT INTO accounts_auditentry (at, actor, reader, kind, action, subject, changes)
    SELECT
        clock_timestamp(),
        coalesce((
            SELECT username FROM auth_user
            WHERE id = substring(reader FROM '^nescio:user:([0-9]+)$')::bigint
        ), ''),
        reader, 'undo', 'update', left(subject, 500),
        CASE WHEN staying = 0 THEN '{}'::jsonb
            ELSE jsonb_build_object('stay as they are', jsonb_build_array(NULL, staying))
        END
    FROM (SELECT current_setting('application_name') AS reader) AS statement
$$;
