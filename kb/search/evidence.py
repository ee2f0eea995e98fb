"""One look for evidence: by distance and by words, fused into one order.

Reciprocal rank fusion with k = 60: Cormack, Clarke, Buettcher (SIGIR 2009).
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from django.db import transaction

from kb.embedding import embed_question
from kb.types import Hit, QuestionVector, Route, Scope, SearchResult

from .scope import (
    VISIBLE,
    Parameters,
    choose_route,
    execute,
    scope_parameters,
    vector_parameters,
)

# Up to here comparing every visible row takes about as long as a filtered HNSW scan
# that reaches the same recall; benchmarks/recall.py prints both.
EXACT_LIMIT = 30_000

_FUSION_K = 60
_EF_SEARCH = 100
_DEEP_EF_SEARCH = 400
_POOL = 20  # ranks that are fused, at least
_WORD_MATCHES = (
    1_000  # entries that one word may bring in; a commoner word tells nothing
)

_NEAR_EXACT = f"""
    SELECT e.id, e.confidence, v.vector <-> %(vector)s::vector AS distance
    FROM kb_entry e
    JOIN kb_entryembedding v ON v.entry_id = e.id AND v.model_id = %(model)s
    WHERE {VISIBLE}
"""  # noqa: S608  # own constants
_NEAR_HNSW = f"""
    SELECT e.id, e.confidence, v.vector <-> %(vector)s::vector AS distance
    FROM kb_entryembedding v
    JOIN kb_entry e ON e.id = v.entry_id
    WHERE v.model_id = %(model)s AND {VISIBLE}
    ORDER BY v.vector::vector({{dimensions}}) <-> %(vector)s::vector({{dimensions}})
    LIMIT %(pool)s
"""  # noqa: S608  # own constants

_LOOK = f"""
WITH near AS MATERIALIZED ({{near}}),
by_vector AS (
    SELECT id, confidence, distance,
           row_number() OVER (ORDER BY distance, id) AS rank
    FROM (SELECT * FROM near ORDER BY distance, id LIMIT %(pool)s) nearest
),
word AS MATERIALIZED (
    SELECT lexeme,
           ('''' || replace(replace(lexeme, '\\', '\\\\'), '''', '''''') || '''')::tsquery
           AS query
    FROM unnest(to_tsvector(
        CASE (SELECT language FROM kb_knowledgebase WHERE id = %(knowledge_base)s)
            WHEN 'en' THEN 'english'::regconfig
            WHEN 'de' THEN 'german'::regconfig
            ELSE 'simple'::regconfig
        END, %(text)s))
),
match AS (
    SELECT found.id, found.confidence,
           ln(1 + %(visible)s::float / count(*) OVER (PARTITION BY word.lexeme)) AS weight
    FROM word CROSS JOIN LATERAL (
        SELECT e.id, e.confidence FROM kb_entry e
        WHERE e.search_vector @@ word.query AND {VISIBLE}
        LIMIT %(word_matches)s
    ) found
),
by_text AS (
    SELECT id, confidence, distance,
           row_number() OVER (ORDER BY weight DESC, distance, id) AS rank
    FROM (
        SELECT m.id, m.confidence, m.weight,
               v.vector <-> %(vector)s::vector AS distance
        FROM (SELECT id, confidence, sum(weight) AS weight FROM match
              GROUP BY id, confidence) m
        JOIN kb_entryembedding v ON v.entry_id = m.id AND v.model_id = %(model)s
        ORDER BY m.weight DESC, distance, m.id LIMIT %(pool)s
    ) matched
),
fused AS (
    SELECT id, distance, vector_rank, text_rank, score,
           row_number() OVER (ORDER BY score DESC, distance, id) AS place,
           row_number() OVER (ORDER BY distance / confidence, id) AS ratio_place
    FROM (
        SELECT id,
               coalesce(a.distance, b.distance) AS distance,
               coalesce(a.confidence, b.confidence) AS confidence,
               a.rank AS vector_rank, b.rank AS text_rank,
               coalesce(1.0 / (%(fusion_k)s + a.rank), 0)
               + coalesce(1.0 / (%(fusion_k)s + b.rank), 0) AS score
        FROM by_vector a FULL JOIN by_text b USING (id)
    ) ranked
)
SELECT e.id, r.id, e.text, e.question, e.confidence, e.state = 'verified',
       f.distance, f.vector_rank, f.text_rank, f.score::float8,
       coalesce(d.title, ''), coalesce(s.heading, ''), e.verified_at, e.valid_until
FROM kb_embeddingmodel model
LEFT JOIN fused f ON f.place <= %(top_k)s OR f.ratio_place = 1
LEFT JOIN kb_entry e ON e.id = f.id
LEFT JOIN LATERAL (
    SELECT id FROM kb_revision WHERE entry_id = e.id ORDER BY number DESC LIMIT 1
) r ON true
LEFT JOIN kb_document d ON d.id = e.document_id
LEFT JOIN kb_section s ON s.id = e.section_id
WHERE model.id = %(model)s AND model.state = 'active'
ORDER BY f.place
"""  # noqa: S608  # own constants


def search(
    vector: QuestionVector,
    question_text: str,
    *,
    scope: Scope,
    top_k: int,
    deep: bool = False,
    exact_limit: int = EXACT_LIMIT,
) -> SearchResult:
    """Find the entries inside `scope` that speak to a question.

    Nearness and words are fused by rank. The entry with the least distance / confidence
    among all that were ranked is always part of the result, in the last place if fusion
    put it behind `top_k`: fusing must not make a refusal.

    If the active model changed since the question was embedded, it is embedded again.

    Args:
        vector: The embedded question.
        question_text: Its words; empty searches by distance alone.
        top_k: At most so many hits, at least 1.
        deep: Look wider in the index; on the exact route it changes nothing.
        exact_limit: With at most so many visible entries each one is compared.

    Raises:
        EmbedderUnavailableError: The model was switched and the new one cannot be loaded.
    """
    begun = time.perf_counter()
    parameters = scope_parameters(scope)
    visible, route = choose_route(
        VISIBLE, parameters, model_id=vector.model_id, limit=exact_limit
    )
    pool = max(_POOL, top_k)
    rows = _look(
        vector,
        route,
        {
            **parameters,
            **vector_parameters(vector),
            "text": question_text,
            "visible": visible,
            "top_k": top_k,
            "pool": pool,
            "fusion_k": _FUSION_K,
            "word_matches": _WORD_MATCHES,
        },
        ef_search=max(pool, _DEEP_EF_SEARCH if deep else _EF_SEARCH),
    )
    if not rows:  # not even the model: another one became active meanwhile
        return search(
            embed_question(question_text),
            question_text,
            scope=scope,
            top_k=top_k,
            deep=deep,
            exact_limit=exact_limit,
        )
    hits = [Hit(*row) for row in rows if row[0] is not None]
    return SearchResult(
        hits=tuple(hits[: top_k - 1] + hits[-1:]) if len(hits) > top_k else tuple(hits),
        visible=visible,
        route=route,
        embedder=vector.fingerprint,
        deep=deep,
        embed_milliseconds=vector.milliseconds,
        sql_milliseconds=(time.perf_counter() - begun) * 1000,
    )


def _look(
    vector: QuestionVector,
    route: Route,
    parameters: Parameters,
    *,
    ef_search: int,
) -> Sequence[tuple[Any, ...]]:
    with ExitStack() as stack:
        if route is Route.HNSW:
            stack.enter_context(transaction.atomic())
            execute(
                "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true),"
                " set_config('hnsw.ef_search', %(ef_search)s, true)",
                {"ef_search": str(ef_search)},
            )
            near = _NEAR_HNSW.format(dimensions=len(vector.values))
        else:
            near = _NEAR_EXACT
        return execute(_LOOK.format(near=near), parameters)
