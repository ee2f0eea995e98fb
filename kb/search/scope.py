"""What a scope admits, as SQL conditions on an entry `e`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from kb.types import QuestionVector, Scope

Parameter = str | int | float | datetime | list[int] | list[str]
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
    values = ",".join(["%.9g"] * len(vector.values)) % tuple(vector.values.tolist())
    return {"vector": f"[{values}]", "model": vector.model_id}


def execute(sql: str, parameters: Parameters) -> Sequence[tuple[Any, ...]]:
    """Run one statement and return all of its rows."""
    with connection.cursor() as cursor:
        cursor.execute(sql, dict(parameters))
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
