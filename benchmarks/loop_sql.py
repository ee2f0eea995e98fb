"""SQL that writes a million answers with their evidence, votes, reviews and gaps."""

_ANSWERS = """
INSERT INTO qa_answer (id, knowledge_base_id, asker_id, channel, question, language,
    outcome, gate, reason, shown_reason, text, reasoning, policy_id, calibration, signals,
    milliseconds, generation, confidence, contradictions, embedder, language_model, probes,
    error, product_line_id, line_of_business_id, created_at, decided_at)
SELECT gen_random_uuid(), knowledge_base, (%(askers)s::bigint[])[1 + n %% 40],
    CASE WHEN n %% 50 = 0 THEN 'evaluation' WHEN n %% 3 = 0 THEN 'api' ELSE 'page' END,
    'How do I ' || (%(verbs)s::text[])[1 + n %% 17] || ' the '
        || (%(things)s::text[])[1 + n %% 23] || ' of contract ' || n || '?',
    'en', outcome, gate, reason, reason,
    CASE outcome WHEN 'answered' THEN repeat('The fee is charged on the day of issue. ', 3)
        WHEN 'refused' THEN 'I do not know this.' ELSE '' END,
    '', (%(policies)s::bigint[])[knowledge_base_rank], 'hand_set',
    CASE outcome WHEN 'failed' THEN '[]' ELSE %(signals)s::jsonb END,
    jsonb_build_object('question', 0.1, 'retrieve', round((8 + 30 * r * r)::numeric, 3),
        'retrieve.embed', 7.5, 'generate', CASE WHEN gate IN ('', 'soft_refusal')
            THEN round((900 + 4000 * s * s * s)::numeric, 3) ELSE 0 END),
    CASE outcome WHEN 'answered' THEN %(generation)s::jsonb ELSE '{}' END,
    '{}', '[]', repeat('e', 64), 'bundled', '', '',
    CASE WHEN n %% 4 > 0 THEN (%(product_lines)s::bigint[])[1 + n %% 6] END,
    CASE WHEN n %% 3 > 0 THEN (%(lines_of_business)s::bigint[])[1 + n %% 4] END,
    at, at + interval '2 seconds'
FROM (
    SELECT *, (%(bases)s::bigint[])[knowledge_base_rank] AS knowledge_base,
        CASE WHEN q < 0.62 OR q >= 0.98 THEN '' WHEN q < 0.84 THEN 'hard_refusal'
            WHEN q < 0.93 THEN 'soft_refusal' ELSE 'abstention' END AS gate,
        CASE WHEN q < 0.62 OR q >= 0.98 THEN '' WHEN q < 0.78 THEN 'too_far'
            WHEN q < 0.82 THEN 'nothing_known' WHEN q < 0.84 THEN 'not_entitled'
            WHEN q < 0.93 THEN 'model_declined' ELSE 'low_confidence' END AS reason,
        CASE WHEN q < 0.62 THEN 'answered' WHEN q < 0.98 THEN 'refused'
            ELSE 'failed' END AS outcome
    FROM (
        SELECT n, random() AS q, random() AS r, random() AS s,
            CASE WHEN n %% 5 = 0 THEN 2 ELSE 1 END AS knowledge_base_rank,
            now() - (%(answers)s - n) * interval '1 day' * %(days)s / %(answers)s AS at
        FROM generate_series(1, %(answers)s) n
    ) drawn
) rows
"""
_EVIDENCE = """
INSERT INTO qa_answerevidence (answer_id, entry_id, revision_id, rank, role, quote,
    distance, confidence)
SELECT a.id, e.entry_id, e.revision_id, rank,
    CASE WHEN a.outcome = 'refused' THEN 'near_miss' WHEN rank = 1 THEN 'cited'
        ELSE 'unused' END,
    '', 0.4 + 0.1 * rank, 1
FROM (SELECT id, outcome, row_number() OVER () AS n FROM qa_answer WHERE gate <> 'hard_refusal'
    AND outcome <> 'failed') a
CROSS JOIN generate_series(1, 3) rank
JOIN (SELECT entry_id, min(id) AS revision_id, row_number() OVER (ORDER BY entry_id) AS m
    FROM kb_revision GROUP BY entry_id) e ON e.m = 1 + (a.n * 7 + rank * 13) %% %(entries)s
"""
_VOTES = """
INSERT INTO qa_vote (answer_id, user_id, is_up, reasons, comment, expected_answer,
    handled_at, handled_by_id, created_at, updated_at)
SELECT id, asker_id, up, CASE WHEN up THEN '{}' ELSE '{wrong}'::varchar[] END,
    CASE WHEN up THEN '' ELSE 'This is not so any more.' END, '',
    CASE WHEN h < 0.6 THEN created_at + interval '1 day' END,
    CASE WHEN h < 0.6 THEN %(reviewer)s::bigint END,
    created_at + interval '1 minute', created_at + interval '1 minute'
FROM (SELECT *, random() < 0.7 AS up, random() AS h FROM qa_answer
    WHERE outcome IN ('answered', 'refused') AND random() < 0.1) voted
"""
_ESCALATIONS = """
INSERT INTO qa_escalation (answer_id, raised_by_id, note, state, reply, replied_at,
    replied_by_id, created_at)
SELECT id, asker_id, 'A customer waits for it.',
    CASE WHEN open THEN 'open' ELSE 'answered' END,
    CASE WHEN open THEN '' ELSE 'It is charged at once.' END,
    CASE WHEN open THEN NULL ELSE created_at + interval '1 day' END,
    CASE WHEN open THEN NULL ELSE %(reviewer)s::bigint END, created_at + interval '1 hour'
FROM (SELECT *, random() < 0.2 AS open FROM qa_answer
    WHERE outcome = 'refused' AND random() < 0.03) raised
"""
_SAMPLES = """
INSERT INTO qa_reviewsample (knowledge_base_id, seed, hours, minutes_a_review, second_share,
    since, until, dimensions, population, drawn_at)
SELECT base, month, 20, 4, 0.2, now() - (month + 1) * interval '30 days',
    now() - month * interval '30 days', '{outcome,vote,product_line}', 0, now()
FROM generate_series(0, 5) month, unnest(%(bases)s::bigint[]) base
"""
_DRAWN = """
CREATE TEMPORARY TABLE drawn AS
SELECT *, count(*) OVER alike AS population,
    row_number() OVER (alike ORDER BY created_at) AS place
FROM (
    SELECT a.id, s.id AS sample, a.outcome, a.gate, a.product_line_id AS product_line,
        a.created_at, CASE v.is_up WHEN true THEN 'up' WHEN false THEN 'down' ELSE 'none' END
        AS vote
    FROM qa_answer a JOIN qa_reviewsample s ON s.knowledge_base_id = a.knowledge_base_id
        AND a.created_at >= s.since AND a.created_at < s.until
    LEFT JOIN qa_vote v ON v.answer_id = a.id
    WHERE a.outcome IN ('answered', 'refused') AND a.channel <> 'evaluation'
) live
WINDOW alike AS (PARTITION BY sample, outcome, gate, product_line, vote)
"""
_STRATA = """
INSERT INTO qa_reviewstratum (sample_id, vote, outcome, gate, product_line_id, population,
    drawn)
SELECT sample, vote, outcome, gate, product_line, population, least(population, 25)
FROM drawn WHERE place = 1
"""
_REVIEWS = """
INSERT INTO qa_review (answer_id, stratum_id, round, tag_id, state, completeness,
    correctness, truthfulness, should_be_answered, evidence_used, ideal_answer, note,
    reviewed_by_id, reviewed_at, seconds_spent, created_at)
SELECT d.id, s.id, round, d.product_line, CASE WHEN is_open THEN 'waiting' ELSE 'done' END,
    CASE WHEN is_open OR d.outcome = 'refused' THEN NULL ELSE 2 END,
    CASE WHEN is_open OR d.outcome = 'refused' THEN NULL WHEN is_false THEN 0 ELSE 2 END,
    CASE WHEN is_open OR d.outcome = 'refused' THEN NULL ELSE 2 END,
    CASE WHEN is_open OR d.outcome = 'answered' THEN NULL ELSE is_false END, '{}', '', '',
    CASE WHEN is_open THEN NULL ELSE %(reviewer)s::bigint END,
    CASE WHEN is_open THEN NULL ELSE d.created_at + interval '9 days' END, 200,
    d.created_at + interval '7 days'
FROM (
    SELECT *, place %% 6 = 0 AS is_open,
        random() < CASE vote WHEN 'down' THEN 0.6 WHEN 'up' THEN 0.02 ELSE 0.08 END AS is_false
    FROM drawn WHERE place <= 25
) d
JOIN qa_reviewstratum s ON (s.sample_id, s.vote, s.outcome, s.gate)
    = (d.sample, d.vote, d.outcome, d.gate)
    AND s.product_line_id IS NOT DISTINCT FROM d.product_line
CROSS JOIN generate_series(1, 2) round
WHERE round = 1 OR place %% 5 = 0
"""
_GAPS = """
INSERT INTO qa_gap (knowledge_base_id, question, vector, state, reason, questions, askers,
    first_seen, last_seen, impact_score, closed_at, created_at)
SELECT (%(bases)s::bigint[])[1 + n %% 2], 'What is the ' || (%(things)s::text[])[1 + n %% 23]
        || ' of gap ' || n || '?',
    (SELECT l2_normalize(array_agg(random() - 0.5 + 0 * (n + d))::vector)
        FROM generate_series(1, 384) d),
    CASE WHEN n %% 5 = 0 THEN 'filled' ELSE 'open' END, '',
    %(answers)s * 9 / 25 / 3000, 40, now() - interval '180 days', now(), random() * 20,
    CASE WHEN n %% 5 = 0 THEN now() END, now()
FROM generate_series(1, 3000) n
"""
_GAP_QUESTIONS = """
INSERT INTO qa_gapquestion (gap_id, answer_id, asker_id, why, distance, asked_at)
SELECT g.id, a.id, a.asker_id, 'refused', 0.3, a.created_at
FROM (SELECT *, row_number() OVER () AS n FROM qa_answer WHERE outcome = 'refused') a
JOIN (SELECT id, row_number() OVER (ORDER BY id) AS m FROM qa_gap) g ON g.m = 1 + a.n %% 3000
"""
_DRIFT = """
INSERT INTO qa_driftreading (certificate_id, answers, first_at, last_at, signals,
    has_drifted, checked_at)
SELECT c.id, 2000, now(), now(), (
        SELECT jsonb_object_agg(name, jsonb_build_object('reference', 1000, 'live', 2000,
            'distance', 0.02 + 0.05 * random() + day * 0, 'psi', 0.05, 'p_distance', 0.4,
            'p_psi', 0.4, 'has_drifted', false))
        FROM unnest('{distance_over_confidence,verdict_probability,answer_confidence}'::text[]) name
    ), false, now() - day * interval '1 day'
FROM qa_certificate c, generate_series(0, 89) day
"""
# In this order, because each reads what earlier ones wrote.
STATEMENTS = (
    _ANSWERS, _EVIDENCE, _VOTES, _ESCALATIONS, _SAMPLES, _DRAWN, _STRATA, _REVIEWS, _GAPS,
    _GAP_QUESTIONS, _DRIFT,
)  # fmt: skip
