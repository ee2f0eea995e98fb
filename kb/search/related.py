"""What a search knows beside its evidence: contradictions, and what was excluded and why."""

from collections.abc import Mapping, Sequence
from typing import Any

from kb.conflicts.models import Conflict
from kb.entries.models import Entry
from kb.text.words import sentence_spans
from kb.types import Contradiction, Excluded, Exclusion, QuestionVector, Scope

from .past_tables import rows_of
from .sql import (
    CURRENT,
    ENTITLED,
    IN_KNOWLEDGE_BASE,
    IS_LOOKED_UP,
    MEASURED,
    MEASURED_ONE,
    SERVABLE,
    TRUSTED,
    scope_parameters,
    vector_parameters,
)


def contradictions_between(entry_ids: Sequence[int]) -> tuple[Contradiction, ...]:
    """Return the open contradictions of which both entries are among these.

    One indexed statement over a few ids that the caller may see.
    """
    rows = (
        Conflict.objects.open()
        .contradictions()
        .filter(first__in=entry_ids, second__in=entry_ids)
        .order_by("-score", "pk")
        .values_list(
            "pk", "first_id", "second_id", "first__text", "second__text", "reasons"
        )
    )
    return tuple(
        Contradiction(
            conflict_id,
            (first, second),
            (
                find_quote(first_text, reasons, "first"),
                find_quote(second_text, reasons, "second"),
            ),
        )
        for conflict_id, first, second, first_text, second_text, reasons in rows
    )


def not_compared_among(entry_ids: Sequence[int]) -> frozenset[int]:
    """Return which of these the conflict check has not read as they are now."""
    return frozenset(
        Entry.objects.not_compared()
        .filter(pk__in=entry_ids)
        .values_list("pk", flat=True)
    )


def find_quote(text: str, reasons: Sequence[Mapping[str, Any]], side: str) -> str:
    """Return the sentence that clashes; all of a text where none is marked."""
    places = [reason[side] for reason in reasons if reason[side]]
    for sentence in sentence_spans(text, clauses=True):
        if places and sentence.start <= places[0]["start"] < sentence.end:
            return text[sentence.start : sentence.end].strip()
    return text


# The nearest entries outside a scope: why nothing could be said, never what.


# First come, first counted: causes that an asker may not see are not distinguished further,
# and what has expired would not become evidence by being verified.
_CAUSE = f"""
    CASE
        WHEN NOT {ENTITLED} THEN 'not_entitled'
        WHEN NOT {CURRENT} THEN 'expired'
        ELSE 'unverified'
    END
"""

_NEAREST = f"""
WITH question AS MATERIALIZED (SELECT %(vector)s::vector AS vector),
excluded AS MATERIALIZED (
    SELECT e.id, {_CAUSE} AS cause, e.confidence
    FROM kb_entryoutline e
    WHERE {IN_KNOWLEDGE_BASE} AND {SERVABLE}
      AND NOT ({ENTITLED} AND {CURRENT} AND {TRUSTED})
),
head AS MATERIALIZED (SELECT count(*) {IS_LOOKED_UP} AS is_few FROM excluded),
measured AS (
    SELECT x.cause, x.confidence, v.distance
    FROM excluded x CROSS JOIN LATERAL ({MEASURED_ONE} x.id) v
    WHERE (SELECT is_few FROM head) AND v.distance IS NOT NULL
    UNION ALL
    SELECT x.cause, x.confidence, v.distance
    FROM excluded x JOIN (
        SELECT v.entry_id, {MEASURED} FROM kb_entryembedding v
        WHERE v.model_id = %(model)s GROUP BY v.entry_id
    ) v ON v.entry_id = x.id
    WHERE (SELECT NOT is_few FROM head) AND v.distance IS NOT NULL
)
SELECT DISTINCT ON (cause) cause, distance, confidence
FROM measured ORDER BY cause,
    CASE WHEN cause = 'unverified' THEN distance ELSE distance / confidence END,
    distance
"""  # noqa: S608  # own constants


def nearest_excluded(vector: QuestionVector, *, scope: Scope) -> tuple[Excluded, ...]:
    """Return the entry outside `scope` that each cause weighs most on, nearest first.

    That is the one with the least distance / confidence, which hard refusal would have
    measured but for the cause; of the unverified the nearest, since verifying one
    would make its confidence 1.

    An entry that is excluded for several causes counts under one: not entitled before
    expired before unverified. Drafts and retired entries are as if they did not exist.
    Always exact: it runs before a refusal only, whose reason must be true.
    """
    parameters = {**scope_parameters(scope), **vector_parameters(vector)}
    rows = rows_of(_NEAREST, parameters, scope)
    return tuple(
        sorted(
            (
                Excluded(Exclusion(cause), distance, confidence)
                for cause, distance, confidence in rows
            ),
            key=lambda excluded: excluded.distance,
        )
    )
