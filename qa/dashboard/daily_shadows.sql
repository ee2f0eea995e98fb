-- What gates in shadow would have refused of what was shown; qa/dashboard/shadows.py says
-- which signals refuse, and how each is held against the limit that was stored with it.
WITH shadowed AS MATERIALIZED (
    SELECT p.id AS policy_id, NOT p.answer_without_probe AS needs_probe, judging.*
    FROM qa_policy p CROSS JOIN jsonb_to_recordset(%(judging)s::jsonb) AS judging (
        name text, switch text, above text, comparison text, missing text, unless text)
    WHERE NOT (to_jsonb(p) ->> switch)::boolean
        AND (above IS NULL OR (to_jsonb(p) ->> above)::float8 > 0)
), judged AS MATERIALIZED (
    SELECT a.id, a.knowledge_base_id, a.product_line_id, a.line_of_business_id,
        signal ->> 'gate' AS gate,
        bool_or(CASE
            WHEN held.value IS NULL
                THEN missing = 'fails' OR (missing = 'no probe' AND needs_probe)
            WHEN comparison = 'below' THEN NOT held.value < held.threshold
            WHEN comparison = 'at most' THEN NOT held.value <= held.threshold
            WHEN comparison = 'at least' THEN NOT held.value >= held.threshold
            ELSE held.value <> held.threshold
        END) AS is_refused
    FROM qa_answer a
    CROSS JOIN LATERAL jsonb_array_elements(a.signals) signal
    JOIN shadowed s ON s.policy_id = a.policy_id AND s.name = signal ->> 'name'
    CROSS JOIN LATERAL (
        SELECT (signal ->> 'value')::float8 AS value,
            (signal ->> 'threshold')::float8 AS threshold
    ) held
    WHERE a.created_at >= %(begin)s AND a.created_at < %(end)s
        AND a.outcome = 'answered' AND a.channel = ANY(%(channels)s)
        AND a.policy_id IN (SELECT policy_id FROM shadowed)
        AND NOT EXISTS (
            SELECT FROM jsonb_array_elements(a.signals) other
            WHERE other ->> 'name' = s.unless AND other ->> 'value' IS NOT NULL
        )
    GROUP BY a.id, signal ->> 'gate'
), weighed AS MATERIALIZED (
    SELECT judged.*, reviewed.is_right, reviewed.is_wrong, voted.up, voted.down
    FROM judged
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE is_refused AND is_up) AS up,
            count(*) FILTER (WHERE is_refused AND NOT is_up) AS down
        FROM qa_vote WHERE answer_id = judged.id
    ) voted
    CROSS JOIN LATERAL (
        SELECT coalesce(bool_or(NOT wrong), false) AS is_right,
            coalesce(bool_or(wrong), false) AS is_wrong
        FROM (
            SELECT correctness < 2 OR coalesce(truthfulness < 2, false) OR falls_short AS wrong
            FROM qa_review
            WHERE answer_id = judged.id AND is_refused AND round = 1 AND state = 'done'
                AND correctness IS NOT NULL
            ORDER BY reviewed_at DESC LIMIT 1
        ) last
    ) reviewed
), tagged AS (
    SELECT weighed.*, tag.id AS tag_id FROM weighed CROSS JOIN LATERAL (
        SELECT DISTINCT id
        FROM (VALUES (NULL::bigint), (product_line_id), (line_of_business_id)) each (id)
    ) tag
)
INSERT INTO qa_dailyshadow (day, knowledge_base_id, tag_id, gate, answers, refused, "right",
    wrong, up, down)
SELECT %(day)s, knowledge_base_id, tag_id, gate, count(*),
    count(*) FILTER (WHERE is_refused), count(*) FILTER (WHERE is_right),
    count(*) FILTER (WHERE is_wrong), sum(up), sum(down)
FROM tagged GROUP BY knowledge_base_id, tag_id, gate
