"""Searching the knowledge of a past moment with the statements that search the present.

A statement of `evidence` or `related` is preceded by tables of the same names with
their former rows: PostgreSQL prefers the name of a WITH query to a table's. So the
search of the past is exactly today's. It is always exact, because no index holds former
rows.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from accounts.prepared import execute, execute_prepared
from kb.embedding.models import EntryEmbedding
from kb.types import Past, Scope

from .sql import Parameter

# OFFSET 0 keeps the vectors from being joined as tables: they are fetched entry by
# entry. Joining the revision itself applies row-level security to every reader. An
# entry that the asker may not see now counts as one that they could not see then.
_TABLES = """
WITH past AS MATERIALIZED (
    SELECT p.*, coalesce(CASE WHEN %(as_then)s OR p.audience_now = ANY(%(audiences)s)
        THEN p.audience_id END, 0) AS seen_by
    FROM kb_past(%(knowledge_base)s, %(at)s) p
),
kb_document AS (
    SELECT id, title FROM past WHERE document_audience = ANY(%(audiences)s)
),
kb_section AS (
    SELECT id, heading FROM past WHERE document_audience = ANY(%(audiences)s)
),
kb_entry AS MATERIALIZED (
    SELECT past.id, %(knowledge_base)s::bigint AS knowledge_base_id,
           past.seen_by AS audience_id, past.state, past.confidence, past.valid_until,
           past.id AS document_id, past.id AS section_id,
           r.question, r.text, r.verified_at,
           CASE WHEN (r.question, r.text, r.language) = (e.question, e.text, e.language)
               THEN e.search_vector
               ELSE to_tsvector(CASE r.language WHEN 'en' THEN 'english'::regconfig
                       WHEN 'de' THEN 'german'::regconfig ELSE 'simple'::regconfig END,
                   r.question || ' ' || r.text)
           END AS search_vector
    FROM past
    JOIN kb_revision r ON r.id = past.revision_id
    JOIN kb_entry e ON e.id = past.id
    WHERE past.seen_by = ANY(%(audiences)s)
),
kb_entrywords AS (SELECT * FROM kb_entry),
kb_entryoutline AS (
    SELECT id, %(knowledge_base)s::bigint AS knowledge_base_id, seen_by AS audience_id,
           state, confidence, valid_until
    FROM past
),
-- Of wordings it is not kept which there were.
kb_wording AS (
    SELECT id, id AS entry_id, ''::text AS text, true AS answers FROM past WHERE false
),
kb_audience AS (SELECT DISTINCT seen_by AS id FROM past),
kb_revision AS (SELECT revision_id AS id, id AS entry_id, number FROM past),
kb_entryembedding AS NOT MATERIALIZED (
    SELECT past.id AS entry_id, v.model_id, v.part, v.vector
    FROM past CROSS JOIN LATERAL (
        SELECT v.model_id, v.part, v.vector FROM kb_entryembedding v
        WHERE v.entry_id = past.id AND v.model_id = %(model)s
            AND v.text_sha256 = past.digest AND v.part < %(wordings)s
        UNION ALL
        SELECT v.model_id, v.part, v.vector FROM kb_formervector v
        WHERE v.entry_id = past.id AND v.model_id = %(model)s
            AND v.text_sha256 = past.digest AND v.part < %(wordings)s
        OFFSET 0
    ) v
),
question AS"""
_UNBOUNDED = 2**31 - 1


def rows_of(
    statement: str, parameters: Mapping[str, Parameter], scope: Scope
) -> Sequence[tuple[Any, ...]]:
    """Run a search's statement, as of `scope.at` if the scope is past."""
    if not scope.past:
        return execute_prepared(statement, parameters)
    return execute(_as_of(statement), {**parameters, **_past_parameters(scope)})


@cache
def _as_of(statement: str) -> str:
    """Return a search's statement over the tables as they were at `scope.at`."""
    return statement.replace("WITH question AS", _TABLES, 1)


def _past_parameters(scope: Scope) -> dict[str, Parameter]:
    """Return the additional parameters: all entries are compared, in one join."""
    return {
        "as_then": scope.past is Past.AS_THEN,
        "wordings": int(EntryEmbedding.Part.WORDINGS),
        "bound": _UNBOUNDED,
        "few": _UNBOUNDED,
        "index": "none",
        "looked_up": -1,
        "looked_up_share": 0,
    }
