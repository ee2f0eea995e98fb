"""What a scope admits, as SQL conditions on an entry `e`, and by which route to search it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from kb.types import QuestionVector, Route, Scope
from kb.vector_index import INDEX_IS_READY, index_name

Parameter = str | int | float | datetime | list[int]
Parameters = Mapping[str, Parameter]

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


def vector_parameters(vector: QuestionVector) -> dict[str, Parameter]:
    """Return the question's vector as pgvector reads it, exact to the last bit."""
    values = ",".join(f"{value:.9g}" for value in vector.values.tolist())
    return {"vector": f"[{values}]", "model": vector.model_id}


def choose_route(
    condition: str, parameters: Parameters, *, model_id: int, limit: int
) -> tuple[int, Route]:
    """Count the entries under `condition`, no further than `limit`, and route by it.

    Few rows are compared one by one. Many go through the HNSW index, if the model has
    one: a selective filter over HNSW would find almost nothing.

    Returns:
        The count, at most `limit`, and the route.
    """
    rows = execute(
        f"""
        SELECT
            (SELECT count(*) FROM
                (SELECT 1 FROM kb_entry e WHERE {condition} LIMIT %(bound)s) bounded),
            {INDEX_IS_READY}
        """,  # noqa: S608  # own constants
        {**parameters, "bound": limit + 1, "index": index_name(model_id)},
    )
    count, is_ready = rows[0]
    route = Route.HNSW if count > limit and is_ready else Route.EXACT
    return min(count, limit), route


def execute(sql: str, parameters: Parameters) -> Sequence[tuple[Any, ...]]:
    """Run one statement and return all of its rows."""
    with connection.cursor() as cursor:
        cursor.execute(sql, dict(parameters))
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
