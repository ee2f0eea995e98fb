"""Reads from a streaming replica that are as fresh as those from the primary.

Before a view reads from the replica, the replica must have replayed everything that was
committed on the primary before the view began: so people see what they wrote, and
nobody sees rows to which they lost access. If it is behind or down, the primary is
read.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from django.conf import settings
from django.db import (
    DEFAULT_DB_ALIAS,
    InterfaceError,
    OperationalError,
    connections,
    models,
)

logger = logging.getLogger(__name__)

REPLICA: Final = "replica"
# Errors after which the primary is read: the connection was lost, or the replica had to
# remove rows that a statement was still reading.
LOST: Final = (OperationalError, InterfaceError)
# The primary's position in the log: everything committed is flushed up to it.
_WRITTEN = """
SELECT pg_current_wal_flush_lsn()::text, system_identifier::text FROM pg_control_system()
"""
_REPLAYED = """
SELECT pg_is_in_recovery() AND system_identifier::text = %s,
       coalesce(%s::pg_lsn - pg_last_wal_replay_lsn(), 'Infinity'),
       row_security_active('kb_entry')
FROM pg_control_system()
"""
_LOOK_AGAIN_SECONDS = 0.005
_REST_SECONDS = 5.0  # pause before a replica that was down or behind is tried again

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_chosen: ContextVar[str] = ContextVar("database", default=DEFAULT_DB_ALIAS)
_resting_until = 0.0  # on the monotonic clock; for this process


def reading_alias() -> str:
    """Return the alias of the database that statements read from."""
    return _chosen.get()


class ReplicaRouter:
    """Routes reads to the database that `reading` chose; after a write, the primary."""

    def db_for_read(self, model: type[models.Model], **hints: object) -> str:
        return reading_alias()

    def db_for_write(self, model: type[models.Model], **hints: object) -> str:
        _chosen.set(DEFAULT_DB_ALIAS)
        return DEFAULT_DB_ALIAS

    def allow_relation(self, one: object, other: object, **hints: object) -> bool:
        return True

    def allow_migrate(self, alias: str, app_label: str, **hints: object) -> bool:
        return alias == DEFAULT_DB_ALIAS


def reads_replica(view: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Let a view read from the replica; it must not write, and may be run twice."""

    @wraps(view)
    def read(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with reading():
            try:
                return view(*args, **kwargs)
            except LOST as error:
                if reading_alias() != REPLICA:
                    raise
                connections[REPLICA].close()
                _rest(type(error).__name__)
        return view(*args, **kwargs)

    return read


@contextmanager
def reading() -> Iterator[None]:
    """Read from the replica within the block if it is available and up to date."""
    token = _chosen.set(REPLICA if _is_fit() else DEFAULT_DB_ALIAS)
    try:
        yield
    finally:
        _chosen.reset(token)


def _is_fit() -> bool:
    if (
        REPLICA not in connections.databases
        or connections[DEFAULT_DB_ALIAS].in_atomic_block  # may have uncommitted writes
        or time.monotonic() < _resting_until
    ):
        return False
    if found := problem():
        _rest(found)
    return not found


def _rest(why: str) -> None:
    global _resting_until  # one value per process
    _resting_until = time.monotonic() + _REST_SECONDS
    logger.warning(
        "The primary is read for %g s instead of the replica: %s", _REST_SECONDS, why
    )


def problem() -> str | None:
    """Return why the replica can't be used now, or None.

    Waits up to `NESCIO_DATABASE_REPLICA_WAIT_MS` for it to catch up with the primary.
    """
    written, cluster = _row(DEFAULT_DB_ALIAS, _WRITTEN)
    give_up_at = time.monotonic() + settings.DATABASE_REPLICA_WAIT.total_seconds()
    while True:
        try:
            is_its_own, behind, is_secured = _row(REPLICA, _REPLAYED, cluster, written)
        except LOST as error:
            connections[REPLICA].close()
            return f"not reachable ({type(error).__name__})"
        if not is_its_own:
            return "DATABASE_REPLICA_URL is not a replica of DATABASE_URL"
        if not is_secured:
            return "its role bypasses row-level security: use that of DATABASE_URL"
        if behind <= 0:
            return None
        if time.monotonic() >= give_up_at:
            return f"behind by {behind / 1024:,.0f} KiB of the primary's log"
        time.sleep(_LOOK_AGAIN_SECONDS)


def _row(alias: str, sql: str, *parameters: str) -> tuple[Any, ...]:
    with connections[alias].cursor() as cursor:
        cursor.execute(sql, parameters)
        return tuple(cursor.fetchone())
