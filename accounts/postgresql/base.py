"""The backend of `settings.DATABASES`, which runs every statement for its reader.

`application_name` carries the reader: it is the only freely chosen setting whose value
PostgreSQL reports back after each change, even one by a rollback. So before each
statement it can be compared with `accounts.acting.reader()` without asking the server;
if it differs, it is set together with the role. Poolers in transaction mode, such as
PgBouncer, restore it for each client.
"""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db.backends.postgresql import base
from django.db.backends.utils import CursorWrapper
from psycopg import OperationalError, errors, sql
from psycopg.pq import ExecStatus, TransactionStatus

from accounts.acting import Reader, reader

_CARRIER = b"application_name"


class _Cursor(CursorWrapper):
    """Sets the reader before `copy` and `stream`, which bypass Django's wrappers."""

    def __getattr__(self, name: str) -> Any:
        if name in {"copy", "stream"}:
            self.db.tell_reader()
        return super().__getattr__(name)


class DatabaseWrapper(base.DatabaseWrapper):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.execute_wrappers.append(self._tell_and_execute)

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Return a live connection; if the pool gives a dead one, purge all dead ones.

        By itself, the pool would discover them one by one and wait longer after each;
        after a restart of the database, longer than a request may take.
        """
        connection = super().get_new_connection(conn_params)
        if pool := self.pool:
            try:
                pool.check_connection(connection)
            except OperationalError:
                pool.putconn(connection)
                pool.check()
                connection = super().get_new_connection(conn_params)
        return connection

    def get_connection_params(self) -> dict[str, Any]:
        return {**super().get_connection_params(), "application_name": "nescio"}

    def make_cursor(self, cursor: Any) -> CursorWrapper:
        return _Cursor(cursor, self)

    def tell_reader(self) -> None:
        pgconn = self.connection.pgconn
        wanted = reader()
        known = pgconn.parameter_status(_CARRIER)
        if known == wanted.label or (
            # Only a rollback is possible, after which the server reports the value
            # again.
            pgconn.transaction_status == TransactionStatus.INERROR
        ):
            return
        with self.wrap_database_errors:
            result = pgconn.exec_(_statement(wanted))
            if result.status != ExecStatus.COMMAND_OK:
                said = errors.error_from_result(result)
                # Only the server sets a code; without one, the connection was lost.
                raise said if said.sqlstate else errors.OperationalError(str(said))

    def _tell_and_execute(self, execute: Callable[..., Any], *arguments: Any) -> Any:
        self.tell_reader()
        return execute(*arguments)


def _statement(wanted: Reader) -> bytes:
    name = settings.DATABASE_ROLE
    role = b""
    if name:
        chosen = b"NONE" if wanted.is_owner else sql.Identifier(name).as_bytes()
        role = b"SET ROLE %s; " % chosen
    return b"%sSET application_name = '%s'" % (role, wanted.label)
