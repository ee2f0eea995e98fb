"""The nearest entries outside a scope: why nothing could be said, never what."""

from kb.types import Excluded, Exclusion, QuestionVector, Scope

from .scope import (
    CURRENT,
    ENTITLED,
    IN_KNOWLEDGE_BASE,
    SERVABLE,
    TRUSTED,
    execute,
    scope_parameters,
    vector_parameters,
)

# First come, first counted: what an asker may not see must not be told apart further,
# and what has expired would not become evidence by being verified.
_CAUSE = f"""
    CASE
        WHEN NOT {ENTITLED} THEN 'not_entitled'
        WHEN NOT {CURRENT} THEN 'expired'
        ELSE 'unverified'
    END
"""

_NEAREST = f"""
WITH excluded AS MATERIALIZED (
    SELECT {_CAUSE} AS cause, e.confidence,
           v.vector <-> %(vector)s::vector AS distance
    FROM kb_entry e
    JOIN kb_entryembedding v ON v.entry_id = e.id AND v.model_id = %(model)s
    WHERE {IN_KNOWLEDGE_BASE} AND {SERVABLE}
      AND NOT ({ENTITLED} AND {CURRENT} AND {TRUSTED})
)
SELECT DISTINCT ON (cause) cause, distance, confidence
FROM excluded ORDER BY cause, distance
"""  # noqa: S608  # own constants


def nearest_excluded(vector: QuestionVector, *, scope: Scope) -> tuple[Excluded, ...]:
    """Return the nearest entry outside `scope` for each cause, nearest first.

    An entry that is excluded for several causes counts under one: not entitled before
    expired before unverified. Drafts and retired entries are as if they did not exist.
    """
    rows = execute(_NEAREST, {**scope_parameters(scope), **vector_parameters(vector)})
    return tuple(
        sorted(
            (
                Excluded(Exclusion(cause), distance, confidence)
                for cause, distance, confidence in rows
            ),
            key=lambda excluded: excluded.distance,
        )
    )
