-- Which models worked on a day's answers, for how long and over how many tokens.
WITH used AS MATERIALIZED (
    SELECT a.knowledge_base_id, a.product_line_id, a.line_of_business_id, model.*,
        ceil(ln(greatest(model.ms, %(least)s)) / ln(%(model_growth)s::float8)) AS bucket
    FROM qa_answer a
    CROSS JOIN LATERAL (
        SELECT coalesce((a.generation ->> 'prompt_tokens')::bigint, 0) AS read,
            coalesce((a.generation ->> 'answer_tokens')::bigint, 0) AS written
    ) tokens
    CROSS JOIN LATERAL (VALUES
        ('embedder', a.embedder, (a.milliseconds ->> 'retrieve.embed')::float8, 0, 0),
        -- The verifier's is the last of the fingerprints.
        ('verifier', substring(a.probes FROM '[^ ]+$'),
            (a.milliseconds ->> 'verify')::float8, 0, 0),
        ('language_model', a.language_model, (a.milliseconds ->> 'generate')::float8,
            read, written),
        -- Of two drafts the later one is kept, which was made from evidence.
        ('own_knowledge', a.boundary ->> 'fingerprint',
            (SELECT sum(value::float8) FROM jsonb_each_text(a.milliseconds)
                WHERE key IN ('boundary', 'recall', 'monitored')),
            CASE WHEN a.language_model = '' THEN read ELSE 0 END,
            CASE WHEN a.language_model = '' THEN written ELSE 0 END)
    ) model (kind, fingerprint, ms, read, written)
    WHERE a.created_at >= %(begin)s AND a.created_at < %(end)s
        AND a.outcome <> 'pending' AND a.channel = ANY(%(channels)s)
        AND model.fingerprint <> '' AND model.ms IS NOT NULL
), tagged AS (
    SELECT used.*, tag.id AS tag_id FROM used CROSS JOIN LATERAL (
        SELECT DISTINCT id
        FROM (VALUES (NULL::bigint), (product_line_id), (line_of_business_id)) each (id)
    ) tag
)
INSERT INTO qa_dailymodel (day, knowledge_base_id, tag_id, kind, fingerprint, bucket, answers,
    tokens_read, tokens_written)
SELECT %(day)s, knowledge_base_id, tag_id, kind, fingerprint, bucket, count(*), sum(read),
    sum(written)
FROM tagged GROUP BY knowledge_base_id, tag_id, kind, fingerprint, bucket
