"""What a scope admits, as SQL conditions on an entry `e`."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Self

from django.db import connection
from psycopg import RawCursor
from psycopg._queries import PostgresQuery

from kb.types import QuestionVector, Scope

Parameter = str | int | float | datetime | list[int] | list[str]
Parameters = Mapping[str, Parameter]

_PLACEHOLDER = re.compile(r"%\((\w+)\)s")

# As far as its state goes, an entry may be evidence; drafts and retired entries never.
SERVABLE = "e.state IN ('in_review', 'verified', 'needs_review')"
ENTITLED = "e.audience_id = ANY(%(audiences)s)"
CURRENT = "(e.valid_until IS NULL OR e.valid_until > %(at)s)"
TRUSTED = "(e.state = 'verified' OR e.confidence >= %(floor)s)"
IN_KNOWLEDGE_BASE = "e.knowledge_base_id = %(knowledge_base)s"
VISIBLE = " AND ".join((IN_KNOWLEDGE_BASE, ENTITLED, SERVABLE, CURRENT, TRUSTED))


def scope_parameters(scope: Scope) -> dict[str, Parameter]:
    """Return the parameters that the conditions above name."""
    return {
        "knowledge_base": scope.knowledge_base_id,
        "audiences": list(scope.audience_ids),
        "at": scope.at,
        "floor": scope.unverified_floor,
    }


class _PreparedCursor(RawCursor[tuple[Any, ...]]):
    """Takes a statement and its parameters by name, and prepares it.

    Django's own cursors write the values into the statement, so that each is a new one.
    """

    def execute(self, query: str, params: Parameters) -> Self:  # type: ignore[override]  # narrower: Django hands on what `execute_prepared` gives it
        """Run a statement that this connection parses and plans the first time only."""
        text, names = _numbered(query)
        return super().execute(text, [params[name] for name in names], prepare=True)

    def _convert_query(self, query: Any, params: Any = None) -> PostgresQuery:  # noqa: ANN401  # the library's
        """Keep what is run where Django looks for it, to log it."""
        self._query = super()._convert_query(query, params)
        return self._query


@cache  # of the few statements that are prepared
def _numbered(sql: str) -> tuple[bytes, tuple[str, ...]]:
    """Return the statement with its placeholders numbered, and their names in order."""
    names = tuple(dict.fromkeys(_PLACEHOLDER.findall(sql)))
    text = _PLACEHOLDER.sub(lambda found: f"${names.index(found[1]) + 1}", sql)
    return text.encode(), names


def vector_parameters(vector: QuestionVector) -> dict[str, Parameter]:
    """Return the question's vector as pgvector reads it, exact to the last bit."""
    values = ",".join(["%.9g"] * len(vector.values)) % tuple(vector.values.tolist())
    return {"vector": f"[{values}]", "model": vector.model_id}


def execute(sql: str, parameters: Parameters) -> Sequence[tuple[Any, ...]]:
    """Run one statement and return all of its rows."""
    with connection.cursor() as cursor:
        cursor.execute(sql, dict(parameters))
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def execute_prepared(sql: str, parameters: Parameters) -> Sequence[tuple[Any, ...]]:
    """Do as `execute` for one of a few statements that every question runs.

    A connection parses it once and, where PostgreSQL finds that no plan for these very
    values would be better, plans it once; of a statement of this size both take
    milliseconds. One that needs an index whose condition names a value must know the
    value, and is for `execute`.
    """
    connection.ensure_connection()
    raw: Any = _PreparedCursor(connection.connection)
    with (
        connection.make_debug_cursor(raw)
        if connection.queries_logged
        else connection.make_cursor(raw)
    ) as cursor:
        cursor.execute(sql, dict(parameters))
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
