"""The SQL of a search: the conditions of its scope, and the distances within it."""

from collections.abc import Mapping
from datetime import datetime

from kb.types import QuestionVector, Scope

Parameter = str | int | float | datetime | list[int] | list[str]
Parameters = Mapping[str, Parameter]

# States in which an entry may be evidence; never draft or retired. An entry proposed by
# a model counts like a draft too, unless the scope says otherwise.
SERVABLE = "e.state = ANY(%(states)s)"
ENTITLED = "e.audience_id = ANY(%(audiences)s)"
CURRENT = "(e.valid_until IS NULL OR e.valid_until > %(at)s)"
# The trusted states are also in `VISIBLE`, so that an index finds them.
TRUSTED = """
    (e.state = 'verified' OR e.confidence >=
     CASE e.state WHEN 'proposed' THEN %(enriched_floor)s::float8
                  ELSE %(floor)s::float8 END)
"""
_UNVERIFIED = ("in_review", "needs_review")
_UNREACHABLE = 2.0  # no confidence is above 1
IN_KNOWLEDGE_BASE = "e.knowledge_base_id = %(knowledge_base)s"
VISIBLE = " AND ".join(
    (IN_KNOWLEDGE_BASE, ENTITLED, "e.state = ANY(%(trusted)s)", CURRENT, TRUSTED)
)


def scope_parameters(scope: Scope) -> dict[str, Parameter]:
    enriched = scope.enriched_floor
    unverified = _UNVERIFIED if enriched is None else (*_UNVERIFIED, "proposed")
    # Unverified entries have a confidence below 1.
    is_verified_alone = scope.unverified_floor >= 1 and enriched is None
    return {
        "knowledge_base": scope.knowledge_base_id,
        "audiences": list(scope.audience_ids),
        "at": scope.at,
        "floor": scope.unverified_floor,
        "enriched_floor": _UNREACHABLE if enriched is None else enriched,
        "states": ["verified", *unverified],
        "unverified": list(unverified),
        "trusted": ["verified", *(() if is_verified_alone else unverified)],
    }


def vector_parameters(vector: QuestionVector) -> dict[str, Parameter]:
    """Return the question's vector in pgvector's text format, exact to the last bit."""
    values = ",".join(["%.9g"] * len(vector.values)) % tuple(vector.values.tolist())
    return {
        "vector": f"[{values}]",
        "model": vector.model_id,
        "looked_up": _LOOKED_UP,
        "looked_up_share": _LOOKED_UP_SHARE,
    }


# Distances of the entries in a scope: the parts `head` and `near` of the search
# statement

# An entry's distances, over the rows `v` of its vectors: the least of its content,
# which decides, and that of its place (kb.embedding.models.EntryEmbedding), if it has
# one.
MEASURED = """
    min(v.vector <-> (SELECT vector FROM question)) FILTER (WHERE v.part > 0) AS distance,
    min(v.vector <-> (SELECT vector FROM question)) FILTER (WHERE v.part = 0) AS place
"""
MEASURED_ONE = f"""
    SELECT {MEASURED} FROM kb_entryembedding v
    WHERE v.model_id = %(model)s AND v.entry_id =
"""  # noqa: S608  # own constants; the caller appends the id

# The vectors of up to this many entries, or of a small share of all, are fetched one by
# one; beyond that, reading all of the model's vectors is faster. Fetching one entry's
# vectors took 8 µs among a million, scanning past one 1.5 µs.
_LOOKED_UP = 4_000
_LOOKED_UP_SHARE = 1 / 8
# The crowd around the question is examined first: this many times the pool if
# everything is visible. It pays if more entries are visible than that, and they are not
# a small share of all.
CROWD = 3
FEW = 10
_CROWD_SHARE = 0.2
# The largest error of a distance in half precision. Rounding moves a vector of about
# unit length by at most 2^-11 of it (numbers below 2^-14 by 2^-25 each), and the
# question's likewise, so a distance by less than 0.001; twice that leaves room for the
# sums.
_ROUNDING = 0.002

_VECTORS = """
    (SELECT reltuples FROM pg_class WHERE oid = 'kb_halfvector'::regclass)
"""
_ENTRIES = "(SELECT reltuples FROM pg_class WHERE oid = 'kb_entry'::regclass)"
IS_LOOKED_UP = (
    f"<= greatest(%(looked_up)s::float8, %(looked_up_share)s::float8 * {_ENTRIES})"
)
_IN_CROWD = (
    f"is_within AND visible > %(few)s AND visible >= {_CROWD_SHARE} * {_ENTRIES}"
)

# Every visible entry is compared, though not every one measured to the last bit: none
# outside the crowd is nearer than the farthest inside, give or take the rounding, and
# none has more confidence than the surest visible one. So if the crowd holds a pool of
# visible entries nearer than that, and one of them has a ratio below the least possible
# for an outsider, both the pool and the deciding entry are found. If not, all are
# measured.
#
# OFFSET 0 keeps the lookup of a few rows from being planned as a join of all.
COMPARED = f"""
head AS MATERIALIZED (
    SELECT count(*) AS visible, count(*) < %(bound)s AS is_within,
           max(confidence) AS surest
    FROM (SELECT e.confidence FROM kb_entry e WHERE {VISIBLE} LIMIT %(bound)s) seen
),
crowd AS MATERIALIZED (
    SELECT h.entry_id, h.half <-> (SELECT vector::halfvec FROM question) AS about
    FROM kb_halfvector h
    WHERE h.model_id = %(model)s AND (SELECT {_IN_CROWD} FROM head)
    ORDER BY about
    LIMIT (SELECT ceil(%(crowd)s * greatest(1, {_VECTORS} / greatest(1, visible))) FROM head)
),
close AS MATERIALIZED (
    SELECT e.id, e.confidence, v.distance, v.place
    FROM (SELECT DISTINCT entry_id FROM crowd) near
    CROSS JOIN LATERAL (
        SELECT e.id, e.confidence FROM kb_entry e
        WHERE e.id = near.entry_id AND {VISIBLE} OFFSET 0
    ) e
    CROSS JOIN LATERAL ({MEASURED_ONE} e.id) v
    WHERE v.distance IS NOT NULL
),
settled AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE least(distance, place) < beyond) >= %(pool)s
           AND min(distance / confidence) < beyond / (SELECT surest FROM head)
           AS is_settled
    FROM close, (SELECT max(about) - {_ROUNDING} AS beyond FROM crowd) edge
    GROUP BY beyond
),
visible AS MATERIALIZED (
    SELECT e.id, e.confidence FROM kb_entry e WHERE {VISIBLE} LIMIT %(bound)s
),
near AS MATERIALIZED (
    SELECT id, confidence, distance, place FROM close
    WHERE (SELECT is_settled FROM settled)
    UNION ALL
    SELECT visible.id, visible.confidence, v.distance, v.place
    FROM visible CROSS JOIN LATERAL ({MEASURED_ONE} visible.id) v
    WHERE (SELECT visible {IS_LOOKED_UP} AND is_within FROM head)
          AND (SELECT is_settled FROM settled) IS NOT TRUE AND v.distance IS NOT NULL
    UNION ALL
    SELECT visible.id, visible.confidence, v.distance, v.place
    FROM visible JOIN (
        SELECT v.entry_id, {MEASURED} FROM kb_entryembedding v
        WHERE v.model_id = %(model)s GROUP BY v.entry_id
    ) v ON v.entry_id = visible.id
    WHERE (SELECT NOT visible {IS_LOOKED_UP} AND is_within FROM head)
          AND (SELECT is_settled FROM settled) IS NOT TRUE AND v.distance IS NOT NULL
)
"""  # noqa: S608  # own constants

# The order in which the model's index returns vectors `v`.
NEAR_BY_INDEX = "v.vector::vector({dimensions}) <-> (SELECT vector FROM question)::vector({dimensions})"
INDEXED = f"""
head AS MATERIALIZED (SELECT %(exact_limit)s AS visible, true AS is_within),
found AS MATERIALIZED (
    SELECT e.id, e.confidence
    FROM kb_entryembedding v
    JOIN kb_entry e ON e.id = v.entry_id
    WHERE v.model_id = %(model)s AND {VISIBLE}
    ORDER BY {NEAR_BY_INDEX}
    LIMIT %(indexed)s
),
near AS MATERIALIZED (
    SELECT e.id, e.confidence, v.distance, v.place
    FROM (SELECT DISTINCT id, confidence FROM found) e
    CROSS JOIN LATERAL ({MEASURED_ONE} e.id) v
    WHERE v.distance IS NOT NULL
)
"""  # noqa: S608  # own constants


# Misspelt words: the part `respelt` of the search statement


# Matches of a word beyond this are not counted, which bounds the statement's cost.
WORD_MATCHES_LIMIT = 200
QUOTED = """('''' || replace(replace(lexeme, '\\', '\\\\'), '''', '''''') || '''')"""
_SLIP_LENGTH = 5  # a shorter word differs by one letter from too many others
_SLIP_WORDS = 2  # the longest unknown ones; each takes some 500 index lookups
_LETTERS = "abcdefghijklmnopqrstuvwxyzäöüß"

# For a word of the question that no visible entry has, all words with one letter
# changed, lost, added or swapped are looked up at once, except for common ones, which
# do not affect the ranking. The first letter is assumed to be right.
RESPELT = f"""
slip AS MATERIALIZED (
    SELECT said.word
    FROM regexp_matches(lower(%(text)s), '[[:alpha:]]+', 'g') letters,
         LATERAL (SELECT letters[1] AS word) said,
         LATERAL (SELECT to_tsvector((SELECT config FROM language), said.word) AS is) stem
    WHERE (SELECT is_within FROM head) AND length(said.word) >= {_SLIP_LENGTH}
      AND stem.is <> '' AND NOT tsvector_to_array(stem.is) && %(common)s::text[]
      AND NOT EXISTS (
          SELECT FROM match WHERE match.lexeme = ANY (tsvector_to_array(stem.is))
      )
    GROUP BY said.word ORDER BY length(said.word) DESC, said.word LIMIT {_SLIP_WORDS}
),
variant AS MATERIALIZED (
    SELECT slip.word, string_agg(made.variant, ' ') AS variants
    FROM slip
    CROSS JOIN LATERAL generate_series(1, length(slip.word)) AS at
    CROSS JOIN LATERAL (
        SELECT left(slip.word, at) AS before, substr(slip.word, at + 1) AS after
    ) cut
    CROSS JOIN LATERAL (
        SELECT before || substr(after, 2) AS variant
        UNION ALL SELECT before || substr(after, 2, 1) || left(after, 1) || substr(after, 3)
        UNION ALL SELECT before || letter || rest
        FROM unnest(string_to_array('{_LETTERS}', NULL)) letter,
             unnest(ARRAY[after, substr(after, 2)]) rest
    ) made
    GROUP BY slip.word
),
respelt AS (
    SELECT found.id, found.confidence, own.lexeme,
           count(*) OVER (PARTITION BY own.lexeme) AS matches
    FROM variant
    CROSS JOIN LATERAL (
        SELECT array_agg(lexeme) AS lexemes, string_agg({QUOTED}, '|')::tsquery AS query
        FROM unnest(to_tsvector((SELECT config FROM language), variants))
        WHERE lexeme <> ALL (%(common)s)
    ) near_words
    CROSS JOIN LATERAL (
        SELECT e.id, e.confidence, e.search_vector FROM kb_entrywords e
        WHERE e.search_vector @@ near_words.query AND {VISIBLE}
        LIMIT {WORD_MATCHES_LIMIT} + 1
    ) found
    CROSS JOIN LATERAL unnest(tsvector_to_array(found.search_vector)) own (lexeme)
    WHERE own.lexeme = ANY (lexemes)
)
"""  # noqa: S608  # own constants
