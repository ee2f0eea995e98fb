"""Answers by the million, with what agents and experts said of them, written by SQL.

Half a year of questions: two knowledge bases, a tenth of the entries restricted to an
audience, three pieces of evidence an answer. The same rows each time, but for their ids.
"""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, User
from django.db import connection

from accounts.roles import Role
from accounts.services import create_user
from benchmarks.loop_page_list import PASSWORD
from kb.models import Audience, KnowledgeBase
from kb.services.entries import NewEntry, create_entries
from qa.services.policies import ensure_default_policy

DAYS = 180
ENTRIES = 1_000

_ANSWERS = """
INSERT INTO qa_answer (id, knowledge_base_id, asker_id, channel, question, language,
    outcome, gate, reason, shown_reason, text, reasoning, policy_id, calibration, signals,
    milliseconds, generation, confidence, contradictions, embedder, language_model, probes,
    error, created_at, decided_at)
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
    '{}', '[]', repeat('e', 64), 'bundled', '', '', at, at + interval '2 seconds'
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
_STATEMENTS = (_ANSWERS, _EVIDENCE, _VOTES, _ESCALATIONS)
_SIGNALS = """[
{"gate": "verbatim", "name": "question_distance", "value": null, "threshold": 0.1, "passed": false},
{"gate": "hard_refusal", "name": "distance_over_confidence", "value": 0.55, "threshold": 0.85, "passed": true},
{"gate": "hard_refusal", "name": "verified_ratio", "value": 0.55, "threshold": null, "passed": null},
{"gate": "hard_refusal", "name": "visible_entries", "value": 900, "threshold": null, "passed": null},
{"gate": "soft_refusal", "name": "readable", "value": 1, "threshold": 1, "passed": true},
{"gate": "soft_refusal", "name": "verdict_probability", "value": 0.91, "threshold": 0.6, "passed": true},
{"gate": "soft_refusal", "name": "citations_verified", "value": 1, "threshold": 1, "passed": true},
{"gate": "soft_refusal", "name": "unsupported_facts", "value": 0, "threshold": 0, "passed": true},
{"gate": "soft_refusal", "name": "answer_in_evidence", "value": 0.93, "threshold": null, "passed": null},
{"gate": "soft_refusal", "name": "log_probability", "value": -0.12, "threshold": null, "passed": null}
]"""
_VERBS = [
    "block",
    "pay",
    "return",
    "change",
    "renew",
    "open",
    "close",
    "move",
    "read",
    "sign",
    "find",
    "print",
    "order",
    "keep",
    "share",
    "lower",
    "raise",
]
_THINGS = [
    "card",
    "fee",
    "limit",
    "rate",
    "balance",
    "letter",
    "PIN",
    "statement",
    "loan",
    "policy",
    "claim",
    "account",
    "transfer",
    "form",
    "refund",
    "bonus",
    "contract",
    "address",
    "notice",
    "date",
    "offer",
    "branch",
    "plan",
]


@dataclass(frozen=True, slots=True)
class Readers:
    """Who opens the pages; neither sees the restricted entries."""

    reviewer: User
    agent: User


def fill(answers: int) -> Readers:
    """Write everything into a migrated, empty database."""
    readers = _readers()
    bases = _knowledge(readers.reviewer)
    askers = [create_user(username=f"asker{n}", role=Role.AGENT).pk for n in range(39)]
    values: dict[str, Any] = {
        "answers": answers,
        "days": DAYS,
        "entries": ENTRIES,
        "askers": [readers.agent.pk, *askers],
        "bases": [base.pk for base in bases],
        "policies": [ensure_default_policy(base).pk for base in bases],
        "reviewer": readers.reviewer.pk,
        "verbs": _VERBS,
        "things": _THINGS,
        "signals": _SIGNALS,
        "generation": '{"text": "' + "word " * 150 + '"}',
    }
    with connection.cursor() as cursor:
        # What triggers and foreign keys would check a million times is right by its making.
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("SELECT setseed(0.42)")
        for statement in _STATEMENTS:
            cursor.execute(statement, values)
        cursor.execute("RESET session_replication_role")
        cursor.execute("VACUUM ANALYZE")
    return readers


def _readers() -> Readers:
    reviewer = create_user(username="reviewer", role=Role.CURATOR, password=PASSWORD)
    agent = create_user(username="agent", role=Role.AGENT, password=PASSWORD)
    return Readers(reviewer, agent)


def _knowledge(author: User) -> list[KnowledgeBase]:
    """Write the entries: every tenth is of an audience that no reader is in."""
    everyone = Audience.objects.create(slug="all", name="All", everyone=True)
    few = Audience.objects.create(slug="few", name="Few")
    few.groups.add(Group.objects.create(name="few"))
    bases = [
        KnowledgeBase.objects.create(slug=slug, name=slug.title(), language="en")
        for slug in ("cards", "loans")
    ]
    create_entries(
        [
            NewEntry(
                knowledge_base=bases[n % 5 == 0],
                audience=few if n % 10 == 0 else everyone,
                text=f"Fact {n}: the fee of contract {n} is {n % 97} euros.",
                verify=True,
            )
            for n in range(ENTRIES)
        ],
        author=author,
    )
    return bases
