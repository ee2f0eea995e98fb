"""SQL of a search: the conditions of its scope, and the distances inside it."""

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
    with connection.cursor() as cursor:
        cursor.execute(sql, dict(parameters))
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


# How near the entries inside a scope are: the parts `head` and `near` of a look.


# So many vectors are fetched one by one; for more, reading all of the model's is faster.
LOOKED_UP = 4_000
# The crowd around the question is looked at first, so many times the pool if everything
# is visible. It pays where more are visible than that, and they are no small share of all.
CROWD = 3
FEW = 10
_CROWD_SHARE = 0.2
# By how much a distance in half precision may be off. Rounding moves a vector of about
# unit length by at most 2^-11 of it (numbers below 2^-14 by 2^-25 each), the question's
# likewise, so a distance by less than 0.001; twice that leaves room for the sums.
_ROUNDING = 0.002

_TOTAL = """
    (SELECT reltuples FROM pg_class WHERE oid = 'kb_halfvector'::regclass)
"""
_IN_CROWD = f"is_within AND visible > %(few)s AND visible >= {_CROWD_SHARE} * {_TOTAL}"

# Every visible entry is compared, though not every one measured to the last bit: none
# outside the crowd is nearer than the farthest inside, give or take the rounding, nor is
# any surer than the surest visible one. So if the crowd holds a pool of visible entries
# nearer than that, and one of them has a ratio below the least that an outsider may have,
# both the pool and the deciding entry are found. If not, all are measured.
#
# OFFSET 0 keeps what is meant for a few rows from being planned as a join of all.
COMPARED = f"""
head AS MATERIALIZED (
    SELECT count(*) AS visible, count(*) < %(bound)s AS is_within,
           max(confidence) AS surest
    FROM (SELECT e.confidence FROM kb_entry e WHERE {VISIBLE} LIMIT %(bound)s) seen
),
crowd AS MATERIALIZED (
    SELECT h.embedding_id, h.entry_id,
           h.half <-> (SELECT vector::halfvec FROM question) AS about
    FROM kb_halfvector h
    WHERE h.model_id = %(model)s AND (SELECT {_IN_CROWD} FROM head)
    ORDER BY about
    LIMIT (SELECT ceil(%(crowd)s * greatest(1, {_TOTAL} / greatest(1, visible))) FROM head)
),
close AS MATERIALIZED (
    SELECT e.id, e.confidence, v.distance
    FROM crowd
    CROSS JOIN LATERAL (
        SELECT e.id, e.confidence FROM kb_entry e
        WHERE e.id = crowd.entry_id AND {VISIBLE} OFFSET 0
    ) e
    CROSS JOIN LATERAL (
        SELECT v.vector <-> (SELECT vector FROM question) AS distance
        FROM kb_entryembedding v WHERE v.id = crowd.embedding_id OFFSET 0
    ) v
),
settled AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE distance < beyond) >= %(pool)s
           AND min(distance / confidence) < beyond / (SELECT surest FROM head)
           AS is_settled
    FROM close, (SELECT max(about) - {_ROUNDING} AS beyond FROM crowd) edge
    GROUP BY beyond
),
visible AS MATERIALIZED (
    SELECT e.id, e.confidence FROM kb_entry e WHERE {VISIBLE} LIMIT %(bound)s
),
near AS MATERIALIZED (
    SELECT id, confidence, distance FROM close WHERE (SELECT is_settled FROM settled)
    UNION ALL
    SELECT visible.id, visible.confidence, v.distance
    FROM visible CROSS JOIN LATERAL (
        SELECT v.vector <-> (SELECT vector FROM question) AS distance FROM kb_entryembedding v
        WHERE v.entry_id = visible.id AND v.model_id = %(model)s OFFSET 0
    ) v
    WHERE (SELECT visible <= %(looked_up)s FROM head)
          AND (SELECT is_settled FROM settled) IS NOT TRUE
    UNION ALL
    SELECT visible.id, visible.confidence, v.distance
    FROM visible JOIN (
        -- OFFSET keeps the join from carrying vectors about instead of distances.
        SELECT v.entry_id, v.vector <-> (SELECT vector FROM question) AS distance
        FROM kb_entryembedding v WHERE v.model_id = %(model)s OFFSET 0
    ) v ON v.entry_id = visible.id
    WHERE (SELECT visible > %(looked_up)s AND is_within FROM head)
          AND (SELECT is_settled FROM settled) IS NOT TRUE
)
"""  # noqa: S608  # own constants

INDEXED = f"""
head AS MATERIALIZED (SELECT %(exact_limit)s AS visible, true AS is_within),
near AS MATERIALIZED (
    SELECT e.id, e.confidence, v.vector <-> (SELECT vector FROM question) AS distance
    FROM kb_entryembedding v
    JOIN kb_entry e ON e.id = v.entry_id
    WHERE v.model_id = %(model)s AND {VISIBLE}
    ORDER BY v.vector::vector({{dimensions}}) <-> (SELECT vector FROM question)::vector({{dimensions}})
    LIMIT %(indexed)s
)
"""  # noqa: S608  # own constants
