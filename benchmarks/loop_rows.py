"""Test data: a million answers with votes, escalations and reviews, written by SQL.

Half a year of questions: two knowledge bases, a tenth of the entries restricted to an
audience, three pieces of evidence per answer. Every run writes the same rows, except
for their ids.
"""

from typing import Any

from django.contrib.auth.models import Group, User
from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models import NOT_PROVIDED
from psycopg import sql

from accounts.models import KnowledgeRole
from accounts.roles import Role
from accounts.services import create_token
from benchmarks.loop_knowledge import write_knowledge
from benchmarks.loop_page_list import PASSWORD, PROGRAM
from benchmarks.loop_sql import STATEMENTS
from benchmarks.loop_work import WRITTEN, write_work
from kb.embedding.services import active_model
from kb.embedding.vector_index import build_where_it_pays
from kb.models import KnowledgeBase, Tag
from qa.dashboard.counting import count_days
from qa.models import (
    Answer,
    AnswerEvidence,
    Certificate,
    ChangedDay,
    DriftReading,
    Escalation,
    Gap,
    GapQuestion,
    Policy,
    Review,
    ReviewSample,
    ReviewStratum,
    Vote,
)
from qa.policies.services import ensure_default_policy

DAYS = 180

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


_SET_DEFAULT = sql.SQL("ALTER TABLE {} ALTER COLUMN {} SET DEFAULT {}")
_WRITTEN = (
    Answer, AnswerEvidence, Vote, Escalation, ReviewSample, ReviewStratum, Review, Gap,
    GapQuestion, DriftReading, *WRITTEN,
)  # fmt: skip


def fill(answers: int, entries: int) -> None:
    """Write all rows into a migrated, empty database."""
    reviewer, agent = _user("reviewer", Role.ADMIN), _user("agent", Role.AGENT)
    product_lines = _tags(Tag.Facet.PRODUCT_LINE, 6, reviewer)
    bases = write_knowledge(entries, reviewer, product_lines)
    policies = [ensure_default_policy(base) for base in bases]
    for policy in policies:
        _certify(policy)
    askers = [_user(f"asker{n}", Role.AGENT).pk for n in range(39)]
    values: dict[str, Any] = {
        "answers": answers,
        "days": DAYS,
        "entries": entries,
        "askers": [agent.pk, *askers],
        "bases": [base.pk for base in bases],
        "policies": [policy.pk for policy in policies],
        "product_lines": product_lines,
        "lines_of_business": _tags(Tag.Facet.LINE_OF_BUSINESS, 4, reviewer),
        "reviewer": reviewer.pk,
        "agent": agent.pk,
        "verbs": _VERBS,
        "things": _THINGS,
        "signals": _SIGNALS,
        "generation": '{"text": "' + "word " * 150 + '"}',
    }
    with connection.cursor() as cursor:
        # The rows are valid by construction, so skip triggers and foreign key checks.
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("SELECT setseed(0.42)")
        _default_columns(cursor)
        for statement in STATEMENTS:
            cursor.execute(statement, values)
        write_work(values)
        cursor.execute("RESET session_replication_role")
        cursor.execute("VACUUM ANALYZE")
    build_where_it_pays(active_model())  # in production a worker does this
    ChangedDay.objects.all().delete()
    count_days()


def let_read() -> str:
    """Let every user of `READERS` sign in, and return a token of `PROGRAM`.

    Only the superuser sees the restricted entries.
    """
    experts = [_user("reviewer", Role.ADMIN), _user("expert", Role.SME)]
    experts += [_user("curator", Role.CURATOR), _user("local", None)]
    for user in (*experts, _user("agent", Role.AGENT), _user("root", None)):
        user.set_password(PASSWORD)
        user.is_superuser = user.username == "root"
        user.is_staff = user.username != "agent"
        user.save()
    for tag in Tag.objects.filter(experts=experts[0]):
        tag.experts.set(experts)
    base = KnowledgeBase.objects.earliest("pk")
    KnowledgeRole.objects.get_or_create(
        user=experts[-1], knowledge_base=base, role=Role.CURATOR
    )
    directory = _user(PROGRAM, Role.ADMIN)
    return create_token(user=directory, may_manage_users=True).secret


def _default_columns(cursor: CursorWrapper) -> None:
    """Set database defaults from the model fields, for columns the statements omit."""
    with connection.schema_editor() as editor:
        for model in _WRITTEN:
            for field in model._meta.local_concrete_fields:
                if (
                    field.primary_key
                    or field.null
                    or field.db_default is not NOT_PROVIDED
                ):
                    continue
                names = map(sql.Identifier, (model._meta.db_table, str(field.column)))
                value = sql.Literal(editor.effective_default(field))
                cursor.execute(_SET_DEFAULT.format(*names, value))


def _user(username: str, role: Role | None) -> User:
    user, _ = User.objects.get_or_create(username=username)
    user.groups.set(Group.objects.filter(name=role) if role else [])
    return user


def _tags(facet: Tag.Facet, count: int, expert: User) -> list[int]:
    made = [
        Tag(slug=f"{facet}-{n}", name=f"{facet.label.capitalize()} {n}", facet=facet)
        for n in range(count)
    ]
    for tag in Tag.objects.bulk_create(made)[1:]:  # the first tag has no expert
        tag.experts.add(expert)
    return [tag.pk for tag in made]


def _certify(policy: Policy) -> None:
    Certificate.objects.create(
        policy=policy, method="benchmark", epsilon=0.05, delta=0.05, labelled=1000,
        shown=700, wrong=10, bound=0.03, coverage=0.7, labels_sha256="0" * 64,
        labels_source="none", embedder="0" * 64, retrieval="hybrid",
    )  # fmt: skip
