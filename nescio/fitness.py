"""Checks whether the database is fit to serve answers.

An index that gives up on a selective filter, or loses rows on deletion, causes false
refusals without any error. So every start refuses an unfit database.
"""

import logging
from collections.abc import Sequence

from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connection
from django.utils.version import get_version_tuple

from accounts.acting import as_owner
from accounts.prepared import execute

logger = logging.getLogger(__name__)

# 0.8.2 fixes a leak of other tables' rows into parallel index builds (CVE-2026-3172),
# 0.8.3 and 0.8.4 fix vacuum damage to HNSW indexes.
MIN_PGVECTOR = "0.8.4"
MIN_POSTGRES = 160_000
ITERATIVE_SCAN = "relaxed_order"


def pgvector_version() -> tuple[str | None, str | None]:
    ((installed, available),) = execute(
        "SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector'),"
        " (SELECT default_version FROM pg_available_extensions WHERE name = 'vector')"
    )
    return installed, available


def is_new_enough(version: str) -> bool:
    return get_version_tuple(version) >= get_version_tuple(MIN_PGVECTOR)


def iterative_scan() -> str:
    """Return the mode in which an HNSW scan continues if a filter discards its results.

    An invalid value falls back to "off" only when the extension's library is loaded, so
    the library is used first.
    """
    execute("SELECT '[1]'::vector <-> '[1]'::vector")
    return str(execute("SHOW hnsw.iterative_scan")[0][0])


def pgvector_problem() -> str | None:
    installed, available = pgvector_version()
    offered = installed or available
    if offered is None:
        return (
            "The PostgreSQL server has no pgvector. Install pgvector "
            f"{MIN_PGVECTOR} or newer on it."
        )
    if is_new_enough(offered):
        return None
    remedy = f"Install pgvector {MIN_PGVECTOR} or newer on the server"
    if available is not None and is_new_enough(available):
        remedy = "The server has a newer one"
    return (
        f"pgvector {offered} can lose rows from its indexes. {remedy}, then run: "
        "ALTER EXTENSION vector UPDATE"
    )


def iterative_scan_problem() -> str | None:
    installed, _ = pgvector_version()
    if installed is None:  # not migrated yet
        return None
    found = iterative_scan()
    if found == ITERATIVE_SCAN:
        return None
    return (
        f"hnsw.iterative_scan is {found!r} instead of {ITERATIVE_SCAN!r}: a search with a "
        "narrow audience would find almost nothing. Remove what overrides it, such as "
        "ALTER ROLE or ALTER DATABASE ... SET. Behind a pooler, where the role carries "
        f"it, run: ALTER ROLE ... SET hnsw.iterative_scan = '{ITERATIVE_SCAN}', "
        "and let the pooler connect again (RECONNECT)."
    )


def postgres_problem() -> str | None:
    version = int(execute("SHOW server_version_num")[0][0])
    if version >= MIN_POSTGRES:
        return None
    return f"PostgreSQL {version // 10_000} is too old. Use 16 or newer."


def role_problem(role: str) -> str | None:
    """Return why row-level security would not apply to `role`, or None.

    Args:
        role: Empty for the role that connects.
    """
    ((login, is_secured),) = execute(
        "SELECT session_user, to_regclass('kb_entry') IS NOT NULL AND"
        " EXISTS (SELECT FROM pg_class WHERE oid = to_regclass('kb_entry')"
        "         AND relrowsecurity)"
    )
    if not is_secured:  # not migrated yet
        return None
    role = role or login
    found = execute(
        "SELECT r.rolsuper OR r.rolbypassrls,"
        "       pg_has_role(r.oid, c.relowner, 'USAGE'),"
        "       pg_has_role(session_user, r.oid, 'SET')"
        " FROM pg_roles r, pg_class c"
        " WHERE r.rolname = %s AND c.oid = to_regclass('kb_entry')",
        [role],
    )
    if not found:
        return (
            f'The role "{role}" of NESCIO_DATABASE_ROLE does not exist. Create it: '
            f'CREATE ROLE "{role}" NOLOGIN; GRANT "{role}" TO "{login}"; and grant it '
            "access to the tables, see docs/how-to/run-and-deploy.md."
        )
    ((is_above, is_owner, may_take),) = found
    if is_above or is_owner:
        what = "bypasses row-level security" if is_above else "owns the tables"
        return (
            f'The role "{role}" {what}, so a forgotten filter would show everything. '
            "Set NESCIO_DATABASE_ROLE to one that does not."
        )
    if not may_take:
        return (
            f'"{login}", which connects, may not assume the role "{role}". Let an '
            f'administrator run: GRANT "{role}" TO "{login}"'
        )
    return None


@checks.register(checks.Tags.database)
def check_database(
    app_configs: object, databases: Sequence[str] | None = None, **_: object
) -> list[checks.CheckMessage]:
    if not databases or "default" not in databases:
        return []
    with as_owner("start-up checks"):
        found = (
            ("nescio.E001", postgres_problem()),
            ("nescio.E002", pgvector_problem()),
            ("nescio.E003", iterative_scan_problem()),
            ("nescio.E004", role_problem(settings.DATABASE_ROLE)),
        )
    return [checks.Error(problem, id=code) for code, problem in found if problem]


def require_fit_database() -> None:
    """Raise `ImproperlyConfigured` for an unfit database; one that is down is logged."""
    try:
        problems = check_database(None, databases=["default"])
    except OperationalError as error:
        logger.warning("The database is not reachable yet: %s", error)
        return
    finally:
        connection.close()
    if problems:
        raise ImproperlyConfigured(" ".join(problem.msg for problem in problems))
