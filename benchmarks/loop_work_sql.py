"""SQL that writes the rows that accumulate around entries and answers over years."""

_COLLEAGUES = """
INSERT INTO auth_user (password, is_superuser, username, first_name, last_name, email,
    is_staff, is_active, date_joined)
SELECT '!', false, 'colleague' || n, 'Colleague', 'No. ' || n, '', n %% 20 = 0, true, now()
FROM generate_series(1, 2000) n
"""
_MEMBERSHIPS = """
INSERT INTO auth_user_groups (user_id, group_id)
SELECT u.id, g.id FROM auth_user u JOIN auth_group g
    ON g.name = CASE WHEN u.is_staff THEN 'sme' ELSE 'agent' END
WHERE u.username LIKE 'colleague%%'
"""
_TOKENS = """
INSERT INTO accounts_apitoken (token_key, user_id, created, id, digest, name,
    may_act_for_others, may_manage_users)
SELECT lpad(n::text, 15, '0'), CASE WHEN n <= 20 THEN %(agent)s ELSE u.id END,
    now() - n * interval '1 hour', gen_random_uuid(), 'd' || n, 'desk ' || n, false, false
FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM auth_user) u WHERE n <= 1000
"""
# Two more revisions for every third entry, and sixty for each of the newest 50.
_REVISIONS = """
INSERT INTO kb_revision (entry_id, number, question, text, state, confidence, valid_until,
    language, audience_id, document_id, section_id, owner_id, product_line_id,
    line_of_business_id, verified_by_id, verified_at, review_interval_days, author_id,
    reason, database_user, created_at)
SELECT entry_id, number + more, question, text, state, confidence, valid_until, language,
    audience_id, document_id, section_id, owner_id, product_line_id, line_of_business_id,
    verified_by_id, verified_at, review_interval_days, author_id, 'Still true.',
    'nescio', created_at + more * interval '1 second'
FROM (
    SELECT r.*, row_number() OVER (ORDER BY entry_id DESC) AS n FROM kb_revision r
    JOIN (SELECT entry_id AS e, max(number) AS m FROM kb_revision GROUP BY 1) newest
        ON r.entry_id = e AND r.number = m
) r
JOIN LATERAL generate_series(1, CASE WHEN n <= 50 THEN 60 WHEN n %% 3 = 0 THEN 2 ELSE 0 END)
    more ON true
"""
# A tenth is overdue, a fiftieth expires soon or has, some are flagged or voted down.
_UPKEEP = """
UPDATE kb_upkeep SET uses = entry_id * 7919 %% 97, up = entry_id %% 11, down = entry_id %% 3,
    last_used_at = now() - entry_id %% 90 * interval '1 day',
    review_due = CASE WHEN entry_id %% 10 = 0 THEN now() - entry_id %% 90 * interval '1 day'
        ELSE now() + entry_id %% 300 * interval '1 day' END,
    expiry_notice_at = CASE WHEN entry_id %% 50 = 1
        THEN now() - entry_id %% 60 * interval '1 day' END,
    doubted_since = CASE WHEN entry_id %% 200 = 3 THEN now() - interval '3 days' END,
    flagged_since = CASE WHEN entry_id %% 100 = 7 THEN now() - interval '2 days' END
"""
_OWNERS = """
UPDATE kb_entry SET owner_id = CASE WHEN id %% 40 = 0 THEN %(reviewer)s ELSE (
    SELECT (array_agg(id ORDER BY id))[1 + kb_entry.id %% 50] FROM auth_user
    WHERE is_staff AND username LIKE 'colleague%%') END,
    valid_until = CASE WHEN id %% 50 = 1
        THEN now() + (30 - id %% 60) * interval '1 day' END
WHERE id %% 4 = 0 OR id %% 50 = 1
"""
# Nine out of ten conflicts and proposals are decided.
_RESOLVED = """
UPDATE kb_conflict SET state = 'kept', resolved_at = now(), resolved_by_id = %(reviewer)s
WHERE id %% 10 > 0
"""
_DECIDED = """
UPDATE kb_proposal SET state = 'approved', decided_at = now(), decided_by_id = %(reviewer)s
WHERE id %% 10 > 0
"""
_CONVERSATIONS = """
UPDATE qa_answer a SET conversation = c.first, typed = 'And abroad?'
FROM (
    SELECT id, first_value(id) OVER (PARTITION BY asker_id, part ORDER BY created_at) AS first
    FROM (SELECT id, asker_id, created_at, (row_number() OVER (
        PARTITION BY asker_id ORDER BY created_at)) / 4 AS part FROM qa_answer) p
    WHERE part %% 5 = 0
) c WHERE a.id = c.id
"""
_REPEATS = """
INSERT INTO qa_repeat (before_id, after_id, gap_id, is_better, created_at)
SELECT before, after, gap_id, n %% 3 > 0, now() - n * interval '1 minute' FROM (
    SELECT answer_id AS before, gap_id, row_number() OVER () AS n FROM qa_gapquestion
    WHERE id %% 10 = 0) b
JOIN (SELECT id AS after, row_number() OVER () AS m FROM qa_answer
    WHERE outcome = 'answered' LIMIT 20000) a ON n = m
"""
_NOTICES = """
INSERT INTO qa_notice (user_id, kind, answer_id, escalation_id, created_at, read_at)
SELECT CASE WHEN n %% 10 = 0 THEN %(agent)s ELSE raised_by_id END, 'reply', answer_id, id,
    replied_at, CASE WHEN n %% 5 > 0 THEN replied_at + interval '1 hour' END
FROM (SELECT *, row_number() OVER () AS n FROM qa_escalation WHERE state = 'answered') e
"""
_FLAGGED = """
INSERT INTO qa_notice (user_id, kind, entry_id, created_at, read_at)
SELECT CASE WHEN n %% 2 = 0 THEN %(agent)s ELSE %(reviewer)s END, 'flagged', entry_id,
    created_at, CASE WHEN n %% 4 > 0 THEN created_at END
FROM (SELECT *, row_number() OVER () AS n FROM kb_flag) f
"""
_AUDIT = """
INSERT INTO accounts_auditentry (at, actor, reader, kind, action, subject, changes)
SELECT now() - n * interval '1 minute', 'reviewer', '', (ARRAY['user', 'group',
    'membership', 'token', 'policy'])[1 + n %% 5], 'changed', 'subject ' || n,
    '{"name": ["before", "after"]}' FROM generate_series(1, 200000) n
"""
_JOBS = """
INSERT INTO jobs_job (id, kind, parameters, origin, state, done, cursor, result, error,
    attempts, barren_attempts, max_attempts, owner_id, idempotency_key, cancel_requested,
    worker, created_at, started_at, finished_at)
SELECT gen_random_uuid(), (ARRAY['kb.embed', 'kb.import', 'qa.mail_notice', 'qa.find_gaps'])
    [1 + n %% 4], '{}', '{}', CASE WHEN n %% 97 = 0 THEN 'failed' ELSE 'succeeded' END, 0, '{}',
    '{}', CASE WHEN n %% 97 = 0 THEN 'The mail server did not answer.' ELSE '' END, 1, 0, 5,
    CASE WHEN n %% 3 = 0 THEN %(reviewer)s::bigint END, 'filled ' || n, false, 'worker', at, at, at
FROM (SELECT n, now() - n * interval '3 minutes' AS at FROM generate_series(1, 100000) n) j
"""
_MOVES = """
INSERT INTO qa_confidencemove (entry_id, prior, before, after, up, down, raters, is_undo,
    reason, at)
SELECT id, 0.8, 0.8, 0.7 + 0.001 * (n %% 100), 3, 1, 4, false, '', now() - n * interval '1 minute'
FROM (SELECT id, row_number() OVER () AS n FROM kb_entry WHERE state <> 'verified' OR
    id %% 2 = 0) e
"""
_EVENTS = """
INSERT INTO integrations_event (type, knowledge_base_id, data, key, created_at, routed_at)
SELECT 'gap.opened', (%(bases)s::bigint[])[1], '{"gap": 1}', '', at, at
FROM (SELECT now() - (100000 - n) * interval '1 minute' AS at
    FROM generate_series(1, 100000) n) e
"""
_DELIVERIES = """
INSERT INTO integrations_delivery (endpoint_id, event_id, state, attempts, last_attempt_at,
    status, milliseconds, response, error)
SELECT p.id, e.id, CASE WHEN e.id %% 50 = 0 THEN 'failed' ELSE 'delivered' END, 1, e.created_at,
    CASE WHEN e.id %% 50 = 0 THEN 500 ELSE 200 END, 40, '', ''
FROM integrations_event e JOIN (SELECT id, row_number() OVER () AS n FROM
    integrations_endpoint) p ON p.n <= 2
"""
_DOCUMENTS = """
INSERT INTO kb_followeddocument (source_id, key, title, state, marker, known, document_id,
    error, note, changed_at)
SELECT s.id, 'page-' || d.id, d.title, CASE WHEN d.id %% 40 = 0 THEN 'failed' ELSE 'kept' END,
    '', '{}', d.id, '', '', now()
FROM (SELECT id, row_number() OVER () AS n FROM kb_followedsource) s
JOIN kb_document d ON d.id %% 10 = s.n %% 10
"""
_PAST_QUESTIONS = """
INSERT INTO qa_pastquestion (answer_id, knowledge_base_id, embedding_model_id, vector,
    language_model, verdict, can_be_answered, own_model, labelled_at)
SELECT a.id, a.knowledge_base_id, m.id, g.vector, 'bundled', 0.7, a.outcome = 'answered', '',
    r.reviewed_at
FROM qa_review r JOIN qa_answer a ON a.id = r.answer_id
CROSS JOIN (SELECT id FROM kb_embeddingmodel LIMIT 1) m
CROSS JOIN (SELECT vector FROM qa_gap LIMIT 1) g
WHERE r.state = 'done' AND r.round = 1
ON CONFLICT DO NOTHING
"""
_CASES = """
INSERT INTO qa_savedcase (knowledge_base_id, key, question, expect, answer_contains,
    "references", gate, reason, "group", created_by_id, created_at, updated_at)
SELECT (%(bases)s::bigint[])[1 + n %% 2], 'case-' || n, 'What is charged for contract ' || n
    || '?', CASE WHEN n %% 3 = 0 THEN 'refused' ELSE 'answered' END, '{}', '{}', '', '', '',
    %(reviewer)s, now(), now() FROM generate_series(1, 2000) n
"""
_CASE_ENTRIES = """
INSERT INTO qa_savedcase_entries (savedcase_id, entry_id)
SELECT c.id, e.id FROM (SELECT *, row_number() OVER () AS n FROM qa_savedcase
    WHERE expect = 'answered') c
JOIN (SELECT id, row_number() OVER (ORDER BY id) AS m FROM kb_entry) e ON m = n * 7
"""
_RESULTS = """
INSERT INTO qa_evaluationresult (run_id, case_id, "group", answer_id, is_answerable,
    is_answered, gate, reason, is_correct, signals, measures, milliseconds,
    model_milliseconds)
SELECT r.id, 'case-' || n, '', a.id, n %% 3 > 0, n %% 4 > 0, '', '', n %% 7 > 0,
    jsonb_build_object('question_distance', null, 'distance_over_confidence',
        0.3 + 0.6 * (n %% 101) / 101.0, 'verified_ratio', 0.3 + 0.6 * (n %% 101) / 101.0,
        'unverified_ratio', null, 'readable', 1, 'verdict', 1, 'verdict_probability',
        (n %% 89) / 89.0, 'citations_verified', 1, 'unsupported_facts', 0), '{}', 40, 20
FROM qa_evaluationrun r CROSS JOIN LATERAL (
    SELECT id, row_number() OVER () AS n FROM (SELECT id FROM qa_answer
        WHERE channel = 'evaluation' LIMIT 2000) q
) a
"""
_MARKS = """
INSERT INTO qa_inboxmark (user_id, kind, subject, is_assigned, snoozed_until, changed_at)
SELECT CASE WHEN n %% 3 = 0 THEN %(reviewer)s ELSE %(colleague)s END, kind, id, n %% 2 = 0,
    CASE WHEN n %% 2 = 1 THEN now() + interval '5 days' END, now()
FROM (
    SELECT id, 'entry' AS kind, row_number() OVER () AS n FROM kb_entry WHERE id %% 20 = 0
    UNION ALL SELECT id, 'conflict', row_number() OVER () FROM kb_conflict WHERE state = 'open'
    UNION ALL SELECT id, 'proposal', row_number() OVER () FROM kb_proposal WHERE state = 'proposed'
) m
"""
# In this order, because each reads what earlier ones wrote.
WORK = (
    _COLLEAGUES, _MEMBERSHIPS, _TOKENS, _REVISIONS, _UPKEEP, _OWNERS, _RESOLVED, _DECIDED, _CONVERSATIONS,
    _REPEATS, _NOTICES, _FLAGGED, _AUDIT, _JOBS, _MOVES, _EVENTS, _DELIVERIES, _DOCUMENTS,
    _PAST_QUESTIONS, _CASES, _CASE_ENTRIES, _RESULTS, _MARKS,
)  # fmt: skip
