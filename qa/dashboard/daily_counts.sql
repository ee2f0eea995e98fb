WITH asked AS MATERIALIZED (
    SELECT a.knowledge_base_id, a.outcome, a.gate, a.shown_reason AS reason, a.product_line_id,
        a.line_of_business_id, voted.up, voted.down,
        CASE WHEN took.ms IS NOT NULL AND a.outcome <> 'failed'
            THEN ceil(ln(greatest(took.ms, %(least)s)) / ln(%(growth)s::float8)) END AS bucket
    FROM qa_answer a
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE is_up) AS up,
            count(*) FILTER (WHERE NOT is_up) AS down
        FROM qa_vote WHERE answer_id = a.id
    ) voted
    CROSS JOIN LATERAL (
        SELECT sum(value::float8) AS ms FROM jsonb_each_text(a.milliseconds)
        WHERE position('.' IN key) = 0
    ) took
    WHERE a.created_at >= %(begin)s AND a.created_at < %(end)s
        AND a.outcome <> 'pending' AND a.channel = ANY(%(channels)s)
), tagged AS MATERIALIZED (
    SELECT asked.*, tag.id AS tag_id FROM asked CROSS JOIN LATERAL (
        SELECT DISTINCT id
        FROM (VALUES (NULL::bigint), (product_line_id), (line_of_business_id)) each (id)
    ) tag
), counted AS (
    INSERT INTO qa_dailycount (day, knowledge_base_id, tag_id, outcome, gate, reason,
        answers, up, down)
    SELECT %(day)s, knowledge_base_id, tag_id, outcome, gate, reason, count(*), sum(up),
        sum(down)
    FROM tagged GROUP BY knowledge_base_id, tag_id, outcome, gate, reason
)
INSERT INTO qa_dailylatency (day, knowledge_base_id, tag_id, outcome, bucket, answers)
SELECT %(day)s, knowledge_base_id, tag_id, outcome, bucket, count(*)
FROM tagged WHERE bucket IS NOT NULL
GROUP BY knowledge_base_id, tag_id, outcome, bucket
