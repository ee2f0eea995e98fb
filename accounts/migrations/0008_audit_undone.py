from django.db import migrations

# The application's role adds no entries itself; by this function it adds one of what was
# undone, and the function says by whom.
FUNCTION = """
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
$$
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0007_alerts_by_mail")]

    operations = [
        migrations.RunSQL(FUNCTION, "DROP FUNCTION accounts_audit_undone(text, int)")
    ]
