"""The search for evidence: exact or by HNSW, fusing distance and words into one order.

PostgreSQL stores the most frequent words of every full-text column for its planner and
updates them with each ANALYZE; so no table of counts is needed here.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db import transaction

from accounts.acting import as_owner
from accounts.prepared import execute
from accounts.replica import reading_alias
from kb.embedding.services import embed_question
from kb.embedding.vector_index import EXACT_LIMIT, INDEX_IS_READY, index_name
from kb.types import Evidence, QuestionVector, Route, Scope, SearchResult

from .past_tables import rows_of
from .sql import (
    COMPARED,
    CROWD,
    FEW,
    INDEXED,
    MEASURED_ONE,
    QUOTED,
    RESPELT,
    VISIBLE,
    WORD_MATCHES_LIMIT,
    Parameter,
    scope_parameters,
    vector_parameters,
)

# A word that more entries contain says little and costs much: an OR of five words, two
# of them very common, took 0.9 s among a million entries.
FREQUENCY_CUT = 0.02
# Among this few entries a lookup is cheap whatever the word, and every match may count.
_UNCUT_ENTRIES = 5_000
_KEPT_SECONDS = 300

_COMMON = """
SELECT c.reltuples, s.most_common_elems::text::text[], s.most_common_elem_freqs
FROM pg_class c
LEFT JOIN pg_stats s
    ON s.schemaname = c.relnamespace::regnamespace::text
    AND s.tablename = c.relname AND s.attname = 'search_vector'
WHERE c.oid = 'kb_entry'::regclass
"""


@dataclass(frozen=True, slots=True)
class _Kept:
    words: tuple[str, ...]
    until: float


_lock = threading.Lock()
_kept = _Kept((), 0.0)


def common_words() -> tuple[str, ...]:
    """Return the lexemes above the document-frequency cut, cached for five minutes."""
    global _kept  # one value per process
    with _lock:
        if _kept.until < time.monotonic():
            _kept = _Kept(_read_common_words(), time.monotonic() + _KEPT_SECONDS)
        return _kept.words


def _read_common_words() -> tuple[str, ...]:
    with as_owner("frequencies of words"):  # a secured table's are hidden from others
        rows = execute(_COMMON)
    for entries, words, frequencies in rows:
        if entries < _UNCUT_ENTRIES or words is None:
            break
        # The frequencies are followed by the least, the greatest and that of NULL.
        return tuple(
            word
            for word, frequency in zip(words, frequencies, strict=False)
            if frequency > FREQUENCY_CUT
        )
    return ()


# The weight of a standard deviation of words against one of closeness.
_WORDS_WEIGHT = 0.5
# The share of the place in the closeness that ranks an entry, if it has a place.
_PLACE_WEIGHT = 0.7
_ALIKE = 1e-6  # a smaller standard deviation is the rounding of equal values
_EF_SEARCH = 200
_DEEP_EF_SEARCH = 800
_DEEP_POOL = 100  # nearest entries among which the deep search finds the least ratio
_DEEP_SCAN_TUPLES = 200_000  # pgvector stops after 20,000 that the filters discard
_DEEP_SCAN_MEMORY = 8  # times work_mem, for the scan's record of what it has visited
_POOL = 20  # least number of ranks of each kind that are fused
_VECTORS_OF_ONE = 4  # read from the index for each entry of the pool
# A word in a larger share of the visible entries says nothing, and an entry found only
# by such words would displace one that is close.
_WORD_SHARE = 0.1
_WORD_MATCHES_ALWAYS = 3
_UNBOUNDED = 2**31 - 1
_TEXT_CANDIDATES = 100  # that get their distance measured

_LOOK = f"""
WITH question AS MATERIALIZED (SELECT %(vector)s::vector AS vector),
{{rows}},
by_vector AS (
    SELECT id, confidence, distance, place,
           row_number() OVER (ORDER BY least(distance, place), id) AS rank
    FROM (
        SELECT * FROM near ORDER BY least(distance, place), id LIMIT %(pool)s
    ) nearest
),
deciding AS (
    SELECT id, confidence, distance, place FROM near
    ORDER BY distance / confidence, id LIMIT 1
),
language AS MATERIALIZED (
    SELECT CASE language
        WHEN 'en' THEN 'english'::regconfig
        WHEN 'de' THEN 'german'::regconfig
        ELSE 'simple'::regconfig
    END AS config
    FROM kb_knowledgebase WHERE id = %(knowledge_base)s
),
word AS MATERIALIZED (
    SELECT lexeme, {QUOTED}::tsquery AS query
    FROM unnest(to_tsvector((SELECT config FROM language), %(text)s))
    WHERE (SELECT is_within FROM head) AND lexeme <> ALL (%(common)s)
),
match AS MATERIALIZED (
    SELECT found.id, found.confidence, word.lexeme,
           count(*) OVER (PARTITION BY word.lexeme) AS matches
    FROM word CROSS JOIN LATERAL (
        SELECT e.id, e.confidence FROM kb_entrywords e
        WHERE e.search_vector @@ word.query AND {VISIBLE}
        LIMIT {WORD_MATCHES_LIMIT} + 1
    ) found
),
{RESPELT},
weighed AS MATERIALIZED (
    SELECT id, confidence,
           sum(ln(1 + (SELECT visible FROM head)::float8 / matches)) AS weight
    FROM (SELECT * FROM match UNION SELECT * FROM respelt) matched
    WHERE matches <= (
        SELECT least({WORD_MATCHES_LIMIT},
                     greatest({_WORD_MATCHES_ALWAYS}, {_WORD_SHARE} * visible))
        FROM head
    )
    GROUP BY id, confidence
),
by_text AS (
    SELECT m.id, m.confidence, v.distance, v.place,
           row_number() OVER (ORDER BY m.weight DESC, v.distance, m.id) AS rank
    FROM (
        SELECT * FROM weighed ORDER BY weight DESC, id LIMIT %(text_candidates)s
    ) m CROSS JOIN LATERAL ({MEASURED_ONE} m.id) v
    WHERE v.distance IS NOT NULL
),
candidate AS (
    SELECT id,
           coalesce(a.distance, b.distance, d.distance) AS distance,
           coalesce(a.place, b.place, d.place) AS place,
           coalesce(a.confidence, b.confidence, d.confidence) AS confidence,
           coalesce(w.weight, 0) AS weight,
           a.rank AS vector_rank, b.rank AS text_rank
    FROM by_vector a
    FULL JOIN (SELECT * FROM by_text WHERE rank <= %(pool)s) b USING (id)
    FULL JOIN deciding d USING (id)
    LEFT JOIN weighed w USING (id)
),
-- Both numbers of every candidate, nearness and words, in standard deviations from their mean among all of
-- them. Where they are all alike, as of one alone, the number tells nothing and counts 0.
scored AS (
    SELECT *,
           (avg(farness) OVER pool - farness)
           / greatest(stddev_pop(farness) OVER pool, {_ALIKE})
           + {_WORDS_WEIGHT} * (weight - avg(weight) OVER pool)
           / greatest(stddev_pop(weight) OVER pool, {_ALIKE}) AS score
    FROM (
        SELECT *, distance + {_PLACE_WEIGHT} * coalesce(place - distance, 0) AS farness
        FROM candidate
    ) candidate
    -- In one order, so that two ways to the same rows come to the same last bit.
    WINDOW pool AS (
        ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    )
),
fused AS (
    SELECT id, distance, vector_rank, text_rank, score,
           row_number() OVER (ORDER BY score DESC, distance, id) AS place,
           row_number() OVER (ORDER BY distance / confidence, id) AS ratio_place,
           row_number() OVER (ORDER BY distance, id) AS distance_place
    FROM scored
)
SELECT head.visible, head.is_within, {INDEX_IS_READY} AS has_index,
       e.id,
       (SELECT r.id FROM kb_revision r WHERE r.entry_id = e.id
        ORDER BY r.number DESC LIMIT 1) AS revision_id,
       e.text, e.question, e.confidence, e.state = 'verified' AS is_verified,
       f.distance, f.vector_rank, f.text_rank, f.score,
       coalesce((SELECT title FROM kb_document WHERE id = e.document_id), '')
           AS document_title,
       coalesce((SELECT heading FROM kb_section WHERE id = e.section_id), '')
           AS section,
       e.verified_at, e.valid_until,
       ARRAY(SELECT text FROM kb_wording
             WHERE entry_id = e.id AND answers ORDER BY id) AS wordings,
       ARRAY(SELECT text FROM kb_wording
             WHERE entry_id = e.id AND NOT answers ORDER BY id) AS denied
FROM kb_embeddingmodel model
CROSS JOIN head
LEFT JOIN (fused f JOIN kb_entry e ON e.id = f.id)
    ON f.place <= %(top_k)s
       OR f.ratio_place = 1 OR f.distance_place = 1 OR f.text_rank = 1
WHERE model.id = %(model)s AND model.state = 'active'
      AND model.fingerprint = %(fingerprint)s
ORDER BY f.place
"""  # noqa: S608  # own constants
_COMPARING_LOOK = _LOOK.format(rows=COMPARED)


def search(
    vector: QuestionVector,
    question_text: str,
    *,
    scope: Scope,
    top_k: int,
    deep: bool = False,
    exact_limit: int = EXACT_LIMIT,
) -> SearchResult:
    """Find the entries inside `scope` that are relevant to a question.

    Closeness and words are fused by a weighted sum of their standardized values (Bruch,
    Gai, Ingber: An analysis of fusion functions for hybrid retrieval, ACM TOIS 42,
    2023), which preserves how much closer one entry is than another. The entry with the
    least distance / confidence is always part of the result, and so is the nearest if
    `top_k` is at least 2; if fusion ranks them below `top_k`, they get the last places.
    Fusion must not cause a refusal, nor a wrong reason for one. On the exact route this
    is the least of all visible entries, through an index the least of those examined.
    If `top_k` is at least 3, the best match by words is included too: the only entry
    with a name or a number in the question may be far from it otherwise.

    If `scope.past` is set, all entries are compared as they were at that moment. If the
    active model has changed since the question was embedded, it is embedded again.

    Args:
        vector: The embedded question.
        question_text: The words to look up; empty searches by distance alone.
        top_k: Maximum number of hits, at least 1.
        deep: Search the index more widely. On the exact route there is nothing more to
            find and the result is the same.
        exact_limit: Up to this many visible entries all are compared.
    """
    begun = time.perf_counter()
    parameters = look_parameters(
        vector, question_text, scope=scope, top_k=top_k, exact_limit=exact_limit
    )
    route = Route.EXACT
    rows = rows_of(_COMPARING_LOOK, parameters, scope)
    is_within, has_index = rows[0][1:3] if rows else (True, False)
    if not is_within:
        if has_index:
            route = Route.HNSW
            near = INDEXED.format(dimensions=len(vector.values))
            with transaction.atomic(using=reading_alias()):
                prepare_index_scan(deep=deep)
                if deep:
                    pool = max(_DEEP_POOL, top_k)
                    parameters["indexed"] = pool * _VECTORS_OF_ONE
                rows = execute(_LOOK.format(rows=near), parameters)
        else:  # slower, but complete
            rows = execute(_COMPARING_LOOK, {**parameters, "bound": _UNBOUNDED})
    if not rows:  # no head row: another model became active meanwhile
        return search(
            embed_question(vector.text, reload=True),
            question_text,
            scope=scope,
            top_k=top_k,
            deep=deep,
            exact_limit=exact_limit,
        )
    hits = [
        replace(Evidence(*row[3:-2]), wordings=tuple(row[-2]), denied=tuple(row[-1]))
        for row in rows
        if row[3] is not None
    ]
    return SearchResult(
        hits=_best(hits, top_k),
        visible=min(rows[0][0], exact_limit),
        route=route,
        embedder=vector.fingerprint,
        deep=deep,
        vector=vector,
        embed_milliseconds=vector.milliseconds,
        sql_milliseconds=(time.perf_counter() - begun) * 1000,
    )


def _best(hits: Sequence[Evidence], top_k: int) -> tuple[Evidence, ...]:
    """Return at most `top_k` hits in order, including those that must be among them."""
    if len(hits) <= top_k:
        return tuple(hits)
    deciding = min(hits, key=lambda hit: hit.distance / hit.confidence)
    nearest = min(hits, key=lambda hit: hit.distance)
    named = [hit.entry_id for hit in hits if hit.text_rank == 1]
    wanted = list(dict.fromkeys((deciding.entry_id, nearest.entry_id, *named)))
    wanted += [hit.entry_id for hit in hits if hit.entry_id not in wanted]
    return tuple(hit for hit in hits if hit.entry_id in wanted[:top_k])


def look_parameters(
    vector: QuestionVector,
    question_text: str,
    *,
    scope: Scope,
    top_k: int,
    exact_limit: int,
) -> dict[str, Parameter]:
    return {
        **scope_parameters(scope),
        **vector_parameters(vector),
        "fingerprint": vector.fingerprint,
        "text": question_text,
        "common": list(common_words()),
        "index": index_name(vector.model_id),
        "exact_limit": exact_limit,
        "bound": exact_limit + 1,
        "top_k": top_k,
        "pool": max(_POOL, top_k),
        "few": FEW * max(_POOL, top_k),
        "crowd": CROWD * max(_POOL, top_k),
        "indexed": max(_POOL, top_k) * _VECTORS_OF_ONE,
        "text_candidates": _TEXT_CANDIDATES,
    }


def prepare_index_scan(*, deep: bool = False, may_sort: bool = False) -> None:
    """Set how widely the index is searched, until the current transaction ends.

    The scan continues while the filters discard what it finds; with `deep` even if
    entries outside the scope crowd around the question. The planner would rather sort
    all rows if it expects the filters to discard many, and does so with `may_sort`.
    """
    settings = {
        "hnsw.iterative_scan": "relaxed_order",
        "hnsw.ef_search": str(_DEEP_EF_SEARCH if deep else _EF_SEARCH),
        "enable_sort": "on" if may_sort else "off",
    }
    if deep:
        settings |= {
            "hnsw.max_scan_tuples": str(_DEEP_SCAN_TUPLES),
            "hnsw.scan_mem_multiplier": str(_DEEP_SCAN_MEMORY),
        }
    execute(
        "SELECT set_config(name, value, true)"
        " FROM unnest(%(names)s::text[], %(values)s::text[]) AS t(name, value)",
        {"names": list(settings), "values": list(settings.values())},
    )
