"""The role that statements are run as: it owns nothing, so row-level security binds it."""

from django.conf import settings
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from psycopg import sql

# Roles belong to the whole server: another database of it may have made it before, or be
# making it right now.
_MAKE = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {name}) THEN
        CREATE ROLE {role} NOLOGIN;
    END IF;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN NULL;
    WHEN insufficient_privilege THEN
        RAISE EXCEPTION '%', {remedy} USING ERRCODE = 'insufficient_privilege';
END $$
"""
_GRANT = (
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
    "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema}"
    " GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role}",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA {schema}"
    " GRANT USAGE, SELECT ON SEQUENCES TO {role}",
)
_READ_ONLY = "REVOKE INSERT, UPDATE, DELETE ON accounts_auditentry FROM {role}"
_MAY_TAKE = """
SELECT rolsuper OR pg_has_role(current_user, %s, 'SET') FROM pg_roles
WHERE rolname = current_user
"""


def make_role(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """Make the role where there is none, and grant it rows, and itself to who migrates."""
    name = settings.DATABASE_ROLE
    if not name:
        return
    role = sql.Identifier(name)
    remedy = (
        f'The role "{name}" is not there and may not be made by who migrates. Let an '
        f'administrator run: CREATE ROLE "{name}" NOLOGIN; GRANT "{name}" TO the role '
        "that signs in; then migrate again."
    )
    with editor.connection.cursor() as cursor:
        cursor.execute(
            sql.SQL(_MAKE).format(
                name=sql.Literal(name), role=role, remedy=sql.Literal(remedy)
            )
        )
        cursor.execute(_MAY_TAKE, [name])
        if not cursor.fetchone()[0]:
            cursor.execute(
                sql.SQL("GRANT {role} TO CURRENT_USER WITH SET TRUE").format(role=role)
            )
        cursor.execute("SELECT current_schema()")
        schema = sql.Identifier(cursor.fetchone()[0])
        for statement in _GRANT:
            cursor.execute(sql.SQL(statement).format(schema=schema, role=role))


def let_only_triggers_write(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    """Leave the role no more than to read the audit."""
    if settings.DATABASE_ROLE:
        role = sql.Identifier(settings.DATABASE_ROLE)
        with editor.connection.cursor() as cursor:
            cursor.execute(sql.SQL(_READ_ONLY).format(role=role))
