"""How near the entries inside a scope are: the parts `head` and `near` of a look.

`head` counts the visible entries, `near` holds those that may be among the nearest or
decide, with their distances on the full-precision vectors.
"""

from .scope import VISIBLE

# So many vectors are fetched one by one; for more, reading all of the model's is faster.
LOOKED_UP = 4_000
# Of more visible entries, first the crowd around the question is looked at: so many times
# the pool. It pays where the visible ones are no small share of all.
CROWD = 10
_CROWD_SHARE = 0.2

_IN_CROWD = f"""
    is_within AND visible > %(looked_up)s AND visible >= {_CROWD_SHARE} * (
        SELECT reltuples FROM pg_class WHERE oid = 'kb_entryembedding'::regclass)
"""  # noqa: S608  # own constants

# Every visible entry is compared, though not every one joined: no entry outside the crowd
# is nearer than the farthest inside, nor is any surer than the surest visible one. So if
# the crowd holds a pool of visible entries, and one of them has a ratio below the least
# that an outsider may have, both the pool and the deciding entry are found. If not, all
# are joined.
COMPARED = f"""
head AS MATERIALIZED (
    SELECT count(*) AS visible, count(*) < %(bound)s AS is_within,
           max(confidence) AS surest
    FROM (SELECT e.confidence FROM kb_entry e WHERE {VISIBLE} LIMIT %(bound)s) seen
),
crowd AS MATERIALIZED (
    SELECT v.entry_id, v.vector <-> (SELECT vector FROM question) AS distance
    FROM kb_entryembedding v
    WHERE v.model_id = %(model)s AND (SELECT {_IN_CROWD} FROM head)
    ORDER BY distance, v.entry_id LIMIT %(crowd)s
),
close AS MATERIALIZED (
    SELECT e.id, e.confidence, crowd.distance
    FROM crowd JOIN kb_entry e ON e.id = crowd.entry_id WHERE {VISIBLE}
),
settled AS MATERIALIZED (
    SELECT count(*) >= %(pool)s
           AND min(distance / confidence)
               < (SELECT max(distance) FROM crowd) / (SELECT surest FROM head)
           AS is_settled
    FROM close
),
visible AS MATERIALIZED (
    SELECT e.id, e.confidence FROM kb_entry e WHERE {VISIBLE} LIMIT %(bound)s
),
near AS MATERIALIZED (
    SELECT visible.id, visible.confidence, v.distance
    FROM visible CROSS JOIN LATERAL (
        SELECT v.vector <-> (SELECT vector FROM question) AS distance FROM kb_entryembedding v
        WHERE v.entry_id = visible.id AND v.model_id = %(model)s
    ) v
    WHERE (SELECT visible <= %(looked_up)s FROM head)
    UNION ALL
    SELECT id, confidence, distance FROM close WHERE (SELECT is_settled FROM settled)
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
