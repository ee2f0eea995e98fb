"""What a search returns beside evidence: contradictions, and exclusions by cause."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from accounts.prepared import execute
from accounts.replica import reading_alias
from kb.conflicts.models import Conflict
from kb.embedding.vector_index import INDEX_IS_READY, index_name
from kb.entries.models import Entry
from kb.text.words import sentence_spans
from kb.types import Contradiction, Excluded, Exclusion, QuestionVector, Scope

from .evidence import prepare_index_scan
from .past_tables import rows_of
from .sql import (
    CURRENT,
    ENTITLED,
    IN_KNOWLEDGE_BASE,
    IS_LOOKED_UP,
    MEASURED,
    MEASURED_ONE,
    NEAR_BY_INDEX,
    SERVABLE,
    TRUSTED,
    scope_parameters,
    vector_parameters,
)


def contradictions_between(entry_ids: Sequence[int]) -> tuple[Contradiction, ...]:
    """Return the open contradictions between any two of these entries.

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
    """Return the sentence that clashes; the whole text if none is marked."""
    places = [reason[side] for reason in reasons if reason[side]]
    for sentence in sentence_spans(text, clauses=True):
        if places and sentence.start <= places[0]["start"] < sentence.end:
            return text[sentence.start : sentence.end].strip()
    return text


# The nearest entries outside a scope: they explain why there is no evidence, and are
# never shown


# The first matching cause counts: among entries that an asker may not see, causes are
# not distinguished further, and verifying an expired entry would not make it evidence.
# Each condition is written so that an index finds its entries: if nearly everything is
# visible, they are few.
_OUTSIDE = {
    Exclusion.NOT_ENTITLED: """
        e.audience_id = ANY(ARRAY(
            SELECT id FROM kb_audience WHERE id <> ALL(%(audiences)s)))
    """,
    Exclusion.EXPIRED: f"{ENTITLED} AND e.valid_until <= %(at)s",
    Exclusion.UNVERIFIED: f"""
        e.state = ANY(%(unverified)s) AND {ENTITLED} AND {CURRENT} AND NOT {TRUSTED}
    """,
}
# Beyond this many entries of a cause, the nearest are found by the model's index, if
# there is one.
_COMPARED = 4_000
_VECTORS = 200  # nearest vectors, among whose entries the least ratio is sought

_KEY = """
    CASE cause WHEN 'unverified' THEN distance ELSE distance / confidence END, distance
"""
_EACH = " UNION ALL ".join(
    f"""(
        SELECT e.id, '{cause.value}' AS cause, e.confidence FROM kb_entryoutline e
        WHERE {IN_KNOWLEDGE_BASE} AND {SERVABLE} AND {condition}
        LIMIT (SELECT most FROM bound)
    )"""  # noqa: S608  # own constants
    for cause, condition in _OUTSIDE.items()
)
_NEAREST = f"""
WITH question AS MATERIALIZED (SELECT %(vector)s::vector AS vector),
bound AS MATERIALIZED (
    SELECT CASE WHEN {INDEX_IS_READY} THEN %(compared)s + 1 END AS most
),
seen AS MATERIALIZED ({_EACH}),
many AS MATERIALIZED (
    SELECT cause FROM seen GROUP BY cause HAVING count(*) = (SELECT most FROM bound)
),
excluded AS MATERIALIZED (SELECT * FROM seen WHERE cause NOT IN (SELECT cause FROM many)),
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
    UNION ALL
    SELECT cause, NULL, NULL FROM many
)
SELECT DISTINCT ON (cause) cause, distance, confidence FROM measured ORDER BY cause, {_KEY}
"""  # noqa: S608  # own constants
_BY_INDEX = f"""
WITH question AS MATERIALIZED (SELECT %(vector)s::vector AS vector),
found AS MATERIALIZED (
    SELECT e.id, e.confidence
    FROM kb_entryembedding v JOIN kb_entryoutline e ON e.id = v.entry_id
    WHERE v.model_id = %(model)s AND {IN_KNOWLEDGE_BASE} AND {SERVABLE} AND {{condition}}
    ORDER BY {NEAR_BY_INDEX}
    LIMIT %(vectors)s
)
SELECT cause, distance, confidence
FROM (SELECT DISTINCT id, confidence, '{{cause}}' AS cause FROM found) x
CROSS JOIN LATERAL ({MEASURED_ONE} x.id) v
WHERE distance IS NOT NULL ORDER BY {_KEY} LIMIT 1
"""  # noqa: S608  # own constants


def nearest_excluded(vector: QuestionVector, *, scope: Scope) -> tuple[Excluded, ...]:
    """Return the closest entry outside `scope` for each cause, nearest first.

    That is the one with the least distance / confidence, which hard refusal would have
    measured but for the cause; for unverified entries it is the nearest, since
    verifying one would make its confidence 1.

    An entry excluded for several causes counts under one: not entitled before expired
    before unverified. Drafts and retired entries count as nonexistent. Exact, except
    for a cause with thousands of entries if the model has an index.
    """
    parameters = {
        **scope_parameters(scope),
        **vector_parameters(vector),
        "index": index_name(vector.model_id),
        "compared": _COMPARED,
        "vectors": _VECTORS,
    }
    rows = rows_of(_NEAREST, parameters, scope)
    many = [Exclusion(cause) for cause, distance, _ in rows if distance is None]
    found = [row for row in rows if row[1] is not None]
    if many:
        with transaction.atomic(using=reading_alias()):
            prepare_index_scan()
            for cause in many:
                statement = _BY_INDEX.format(
                    condition=_OUTSIDE[cause],
                    cause=cause.value,
                    dimensions=len(vector.values),
                )
                found += execute(statement, parameters)
    return tuple(
        sorted(
            (Excluded(Exclusion(cause), *of) for cause, *of in found),
            key=lambda excluded: excluded.distance,
        )
    )
