"""A cache of counters in a file shared by the processes of one host.

Throttles use it where CACHE_URL names no Redis. SQLite counts in one atomic statement,
without a round trip to the database; the file survives a restart, so that restarting
does not grant new guesses at passwords.
"""

import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache

from .sqlite_files import open_shared

_WAIT_SECONDS: Final = 5.0  # for other writers; a request that can't be counted passes
_TABLE: Final = """
    CREATE TABLE IF NOT EXISTS counts (
        key text PRIMARY KEY, value integer NOT NULL, expires real NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS counts_expires ON counts (expires);
"""
_ADD: Final = """
    INSERT INTO counts VALUES (:key, :value, :expires) ON CONFLICT (key)
    DO UPDATE SET value = excluded.value, expires = excluded.expires
    WHERE counts.expires <= :now
"""
_SET: Final = "INSERT OR REPLACE INTO counts VALUES (:key, :value, :expires)"
_INCREMENT: Final = """
    UPDATE counts SET value = value + :delta WHERE key = :key AND expires > :now
    RETURNING value
"""


class CounterFile(BaseCache):
    """A Django cache backend for integers; `LOCATION` is the file.

    Every method raises `sqlite3.Error` if the file can't be used.
    """

    def __init__(self, location: str, params: Mapping[str, Any]) -> None:
        super().__init__(dict(params))
        self._file = Path(location)
        # Django creates one instance per thread, and none before a fork.
        self._opened: sqlite3.Connection | None = None

    @property
    def _sql(self) -> sqlite3.Connection:
        if self._opened is None:
            opened = open_shared(self._file, wait_seconds=_WAIT_SECONDS)
            opened.isolation_level = None  # every statement is its own transaction
            opened.executescript(_TABLE)
            self._opened = opened
        return self._opened

    def add(
        self,
        key: str,
        value: int,
        timeout: float | None = DEFAULT_TIMEOUT,
        version: int | None = None,
    ) -> bool:
        """Start a counter unless a live one exists; return whether it was started."""
        now = time.time()
        self._sql.execute("DELETE FROM counts WHERE expires <= ?", [now])
        return self._write(_ADD, key, value, timeout, version)

    def set(
        self,
        key: str,
        value: int,
        timeout: float | None = DEFAULT_TIMEOUT,
        version: int | None = None,
    ) -> None:
        self._write(_SET, key, value, timeout, version)

    def _write(
        self,
        statement: str,
        key: str,
        value: int,
        timeout: float | None,
        version: int | None,
    ) -> bool:
        expires = self.get_backend_timeout(timeout)
        values = {
            "key": self.make_and_validate_key(key, version=version),
            "value": value,
            "expires": float("inf") if expires is None else expires,
            "now": time.time(),
        }
        return self._sql.execute(statement, values).rowcount > 0

    def get(self, key: str, default: Any = None, version: int | None = None) -> Any:
        row = self._sql.execute(
            "SELECT value FROM counts WHERE key = ? AND expires > ?",
            [self.make_and_validate_key(key, version=version), time.time()],
        ).fetchone()
        return row[0] if row else default

    def incr(self, key: str, delta: int = 1, version: int | None = None) -> int:
        """Increment a counter and return it; concurrent increments are never lost.

        Raises:
            ValueError: There is no such counter, or it has expired.
        """
        made = self.make_and_validate_key(key, version=version)
        values = {"key": made, "delta": delta, "now": time.time()}
        rows = self._sql.execute(_INCREMENT, values).fetchall()
        if not rows:
            raise ValueError(f"There is no counter {key!r}.")
        return int(rows[0][0])

    def delete(self, key: str, version: int | None = None) -> bool:
        made = self.make_and_validate_key(key, version=version)
        found = self._sql.execute("DELETE FROM counts WHERE key = ?", [made])
        return found.rowcount > 0

    def clear(self) -> None:
        self._sql.execute("DELETE FROM counts")
