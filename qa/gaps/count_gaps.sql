WITH of_asker AS (
    SELECT gap_id, asker_id, count(*) AS questions,
           min(asked_at) AS first_seen, max(asked_at) AS last_seen,
           sum(power(2::float8,
               extract(epoch FROM asked_at - %(landmark)s)::float8 / %(half_life)s
           )) AS weight
    FROM qa_gapquestion WHERE gap_id = ANY(%(gaps)s) GROUP BY gap_id, asker_id
),
of_gap AS (
    SELECT gap_id, sum(questions) AS questions, count(asker_id) AS askers,
           min(first_seen) AS first_seen, max(last_seen) AS last_seen,
           sum(sqrt(weight)) AS score
    FROM of_asker GROUP BY gap_id
)
UPDATE qa_gap SET
    questions = coalesce(c.questions, 0), askers = coalesce(c.askers, 0),
    first_seen = coalesce(c.first_seen, qa_gap.first_seen),
    last_seen = coalesce(c.last_seen, qa_gap.last_seen),
    impact_score = coalesce(c.score, 0)
FROM unnest(%(gaps)s::bigint[]) AS g(id) LEFT JOIN of_gap c ON c.gap_id = g.id
WHERE qa_gap.id = g.id
RETURNING qa_gap.id
