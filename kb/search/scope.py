"""What a scope admits, as SQL conditions on an entry `e`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from kb.types import QuestionVector, Scope

Parameter = str | int | float | datetime | list[int] | list[str]
Parameters = Mapping[str, Parameter]

# As far as its state goes, an entry may be evidence; drafts and retired entries never.
# What a model proposed is like a draft too, unless the scope says otherwise.
SERVABLE = "e.state = ANY(%(states)s)"
ENTITLED = "e.audience_id = ANY(%(audiences)s)"
CURRENT = "(e.valid_until IS NULL OR e.valid_until > %(at)s)"
TRUSTED = """
    (e.state = 'verified' OR e.confidence >=
     CASE e.state WHEN 'proposed' THEN %(enriched_floor)s::float8
                  ELSE %(floor)s::float8 END)
"""
_STATES = ("in_review", "verified", "needs_review")
_UNREACHABLE = 2.0  # no confidence is above 1
IN_KNOWLEDGE_BASE = "e.knowledge_base_id = %(knowledge_base)s"
VISIBLE = " AND ".join((IN_KNOWLEDGE_BASE, ENTITLED, SERVABLE, CURRENT, TRUSTED))


def scope_parameters(scope: Scope) -> dict[str, Parameter]:
    """Return the parameters that the conditions above name."""
    enriched = scope.enriched_floor
    return {
        "knowledge_base": scope.knowledge_base_id,
        "audiences": list(scope.audience_ids),
        "at": scope.at,
        "floor": scope.unverified_floor,
        "enriched_floor": _UNREACHABLE if enriched is None else enriched,
        "states": list(_STATES if enriched is None else (*_STATES, "proposed")),
    }


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
