"""The connection of `settings.DATABASES`: every statement is run for its reader.

`application_name` carries the reader: of all settings that a client may choose freely
PostgreSQL reports it back after each change, a rollback's too. So before each statement
it is compared with `accounts.acting.reader()`, without asking the server, and set
together with the role where it differs. Poolers in transaction mode, such as PgBouncer,
carry it along with their client.
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
    """Tells the database also before what Django's cursors hand straight to the driver."""

    def __getattr__(self, name: str) -> Any:
        if name in {"copy", "stream"}:
            self.db.tell_reader()
        return super().__getattr__(name)


class DatabaseWrapper(base.DatabaseWrapper):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.execute_wrappers.append(self._tell_and_execute)

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Return a connection that lives; a pool that holds a dead one loses all such at once.

        Left to itself the pool finds one after the other and waits longer after each: after
        a restart of the database, for longer than a request does.
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
            # Nothing but a rollback is possible, which tells what it went back to.
            pgconn.transaction_status == TransactionStatus.INERROR
        ):
            return
        with self.wrap_database_errors:
            result = pgconn.exec_(_statement(wanted))
            if result.status != ExecStatus.COMMAND_OK:
                said = errors.error_from_result(result)
                # Only the server gives a code: without one the connection was lost.
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
