"""Statements in SQL, and such as a connection parses and plans the first time only.

For a statement that every request runs both take longer than running it.
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
    """Run a statement and return all rows; none where it gives none."""
    with connections[reading_alias()].cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
    return rows


def lock_until_commit(name: str) -> None:
    """Keep out who takes the lock of this name too, until the transaction ends."""
    execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [name])


def check_constraints() -> None:
    """Check the deferred constraints now, where their error can be reported."""
    execute("SET CONSTRAINTS ALL IMMEDIATE")
    execute("SET CONSTRAINTS ALL DEFERRED")


class _PreparedCursor(psycopg.Cursor[tuple[Any, ...]]):
    """Prepares what it runs; Django's own cursors write the values into the statement."""

    def execute(self, query: str, params: Mapping[str, Any]) -> Self:  # type: ignore[override]  # narrower: Django hands on what `execute_prepared` gives it
        return super().execute(query, params, prepare=True)

    def _convert_query(self, query: Any, params: Any = None) -> Any:
        """Keep what is run where Django looks for it, to log it."""
        self._query = super()._convert_query(query, params)
        return self._query


def execute_prepared(
    sql: str, parameters: Mapping[str, Any]
) -> Sequence[tuple[Any, ...]]:
    """Run one of a few statements that every request runs, and return all rows.

    Each connection parses it once, and plans it once unless a plan for the values is
    better. A statement that needs a partial index is none for this. Parameters are in
    `sql` as `%(name)s`.
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
        """Write a `values_list` down; nothing is asked yet.

        What depends on the time or on other rows must be left to the database (`Now`, a
        subquery): the parameters stay as they are.
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
