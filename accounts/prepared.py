"""Raw SQL statements, and prepared ones that a connection parses and plans only once.

For a statement that every request runs, parsing and planning take longer than running
it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import psycopg
from django.db import connection, connections, models

from accounts.replica import reading_alias


def execute(
    sql: str, parameters: Mapping[str, Any] | Sequence[Any] | None = None
) -> Sequence[tuple[Any, ...]]:
    """Run a statement and return all rows; empty if it returns none."""
    with connections[reading_alias()].cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
    return rows


def lock_until_commit(name: str) -> None:
    """Take the advisory lock of this name until the transaction ends."""
    execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [name])


def check_constraints() -> None:
    """Check the deferred constraints now, while their errors can still be reported."""
    execute("SET CONSTRAINTS ALL IMMEDIATE")
    execute("SET CONSTRAINTS ALL DEFERRED")


class _PreparedCursor(psycopg.Cursor[tuple[Any, ...]]):
    """A cursor that prepares statements; Django's own insert values on the client."""

    def execute(self, query: str, params: Mapping[str, Any]) -> Self:  # type: ignore[override]  # narrower: Django passes on what `execute_prepared` gives it
        return super().execute(query, params, prepare=True)

    def _convert_query(self, query: Any, params: Any = None) -> Any:
        """Store the statement where Django looks for it when logging."""
        self._query = super()._convert_query(query, params)
        return self._query


def execute_prepared(
    sql: str, parameters: Mapping[str, Any]
) -> Sequence[tuple[Any, ...]]:
    """Run one of the few statements that every request runs, and return all rows.

    Each connection parses it once, and plans it once unless a plan for the given values
    is better. Do not use it for a statement that needs a partial index. Parameters are
    in `sql` as `%(name)s`.
    """
    chosen = connections[reading_alias()]
    chosen.ensure_connection()
    raw: Any = _PreparedCursor(chosen.connection)
    with (
        chosen.make_debug_cursor(raw)
        if chosen.queries_logged
        else chosen.make_cursor(raw)
    ) as cursor:
        cursor.execute(sql, dict(parameters))
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


Row = TypeVar("Row", bound=models.Model)


@dataclass(frozen=True, slots=True)
class WrittenQuery:
    sql: str
    parameters: Mapping[str, Any]

    @classmethod
    def of(cls, rows: models.QuerySet[Any, tuple[Any, ...]]) -> Self:
        """Compile a `values_list` to SQL without running it.

        Values that depend on the time or on other rows must be computed by the database
        (`Now`, a subquery), as the parameters are fixed.
        """
        sql, parameters = rows.query.sql_with_params()
        named = {f"p{at}": value for at, value in enumerate(parameters)}
        kept = sql.replace("%%", "%%%%")  # a literal percent sign
        return cls(kept % tuple(f"%({name})s" for name in named), named)

    def first(self) -> tuple[Any, ...] | None:
        rows = execute_prepared(self.sql, self.parameters)
        return rows[0] if rows else None


def field_names(model: type[models.Model]) -> tuple[str, ...]:
    return tuple(field.attname for field in model._meta.concrete_fields)


def instance(model: type[Row], values: Sequence[Any]) -> Row:
    return model.from_db(connection.alias, field_names(model), values)
