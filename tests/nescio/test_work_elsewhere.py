"""Every address, asked by a curator of Cards: of the work in Travel nothing is shown or done.

Both knowledge bases have one audience, so that what answers questions is seen by all; a
draft, a proposal, an import, a gap, a reply and what else is work is not.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Model
from django.test import Client
from django.urls import get_resolver
from django.utils import timezone

from accounts.services import set_knowledge_roles
from jobs.models import Job
from jobs.run import run_job
from jobs.services import enqueue
from kb.entries.bulk import (
    KIND,
    Action,
    BulkChange,
    change_in_background,
    enqueue_change,
)
from kb.exceptions import InvalidKnowledgeError
from kb.models import (
    Comment,
    Conflict,
    Document,
    Entry,
    FollowedSource,
    FollowRule,
    Import,
    Proposal,
    Revision,
    Section,
)
from qa.evaluation.saved_cases import save_case
from qa.models import Answer, Escalation, Gap, Review, ReviewSample, SavedCase, Vote
from qa.policies.services import ensure_default_policy
from tests.factories import (
    make_audience,
    make_document,
    make_entry,
    make_knowledge_base,
    make_user,
)
from tests.nescio.routes import filled, routes
from tests.nescio.test_leak_matrix import (
    SKIPPED,
    Secret,
    bulk_actions,
    inbox_changes,
    parameters,
    written_by,
)
from tests.qa.answer_rows import make_answer

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

MARK = "Wanderlust"
WEEK = timedelta(days=7)
QUESTION = f"What is the {MARK} limit?"
WORK: tuple[type[Model], ...] = (
    Entry, Revision, Document, Section, Comment, Conflict, Proposal, Import,
    FollowedSource, FollowRule, Gap, SavedCase, Answer, Escalation, Review,
    ReviewSample, Vote,
)  # fmt: skip


class Work:
    """What waits in Travel, each row with the mark; `addresses` are those of further rows."""

    def __init__(self, owner: User) -> None:
        travel = make_knowledge_base("travel")
        document = make_document("Handbook", knowledge_base=travel)
        section = Section.objects.create(document=document, heading="x", position=0)
        fields = {"knowledge_base": travel, "section": section, "state": "draft"}
        entry = make_entry(f"The {MARK} limit is 900 euros.", **fields)
        other = make_entry(f"The {MARK} limit is 800 euros.", **fields)
        conflict = Conflict.objects.create(
            first=entry, second=other, first_revision=1, second_revision=1,
            texts_sha256="0" * 64, kind="contradiction", score=0.9, distance=0.1,
            model="test",
        )  # fmt: skip
        proposal = Proposal.objects.create(
            knowledge_base=travel, entry=other, seed_question=QUESTION,
            question=QUESTION, question_sha256="0" * 64, answer=MARK, sentence=MARK,
            stated=0.5, agreement=0.5, confidence=0.5, model_name="test",
            model_fingerprint="0" * 64, prompt_version="1", random_seed=0,
        )  # fmt: skip
        imported = Import.objects.create(
            knowledge_base=travel, audience=make_audience(), file=f"{MARK}.csv",
            file_name=f"{MARK}.csv", file_sha256="0" * 64, format="csv",
            source=f"{MARK}.csv", created_by=owner, state="planned",
        )  # fmt: skip
        now = timezone.now()
        gap = Gap.objects.create(
            knowledge_base=travel, question=QUESTION, vector=[1.0] * 384,
            first_seen=now, last_seen=now,
        )  # fmt: skip
        tom = make_user(username="tom")
        case = save_case(
            QUESTION, knowledge_base=travel, expects_answer=False, entries=[],
            asker=tom, by=owner,
        )  # fmt: skip
        comment = Comment.objects.create(entry=entry, author=tom, text=f"{MARK}?")
        followed = FollowedSource.objects.create(
            name=f"{MARK} pages", kind="folder", address=f"/srv/{MARK}",
            every_hours=24, knowledge_base=travel, owner=owner, checked_at=now,
        )  # fmt: skip
        FollowRule.objects.create(source=followed, position=0, audience=make_audience())
        self.rows = Secret(
            entry, document, section, conflict, proposal, imported, gap, case, comment,
            followed,
        )  # fmt: skip
        # Of who worked here before, and may see the jobs of nobody else.
        seeds = {"knowledge_base": "travel", "seeds": [QUESTION]}
        self.job = enqueue("kb.enrich", seeds, owner=make_user(username="dora"))
        answer = make_answer(tom, question=QUESTION)
        Answer.objects.update(
            knowledge_base=travel, policy=ensure_default_policy(travel)
        )
        self.answer = answer
        self.escalation = Escalation.objects.create(
            answer=answer, raised_by=tom, note=f"{MARK}!"
        )
        self.review = Review.objects.create(answer=answer)
        self.sample = ReviewSample.objects.create(
            knowledge_base=travel, drawn_by=None,
            hours=1, minutes_a_review=2, second_share=0, since=now - WEEK, until=now,
            seed=1, dimensions=[],
        )  # fmt: skip
        self.vote = Vote.objects.create(
            answer=answer, user=tom, is_up=False, comment=f"{MARK}!"
        )

    def address(self, route: str) -> str:
        model = "/".join(route.split("/")[1:3])
        ours = {
            "qa/answer": self.answer.pk, "qa/escalation": self.escalation.pk,
            "qa/review": self.review.pk, "qa/reviewsample": self.sample.pk,
            "qa/vote": self.vote.pk,
            "jobs/job": self.job.pk,
        }  # fmt: skip
        values = parameters(self.rows, route) | {
            "answer_id": self.answer.pk, "escalation_id": self.escalation.pk,
            "job_id": self.job.pk, "review_id": self.review.pk, "vote_id": self.vote.pk, "slug": "travel",
        }  # fmt: skip
        if model in ours:
            values["object_id"] = ours[model]
        return filled(route, values)

    def questions(self) -> Iterator["Asked"]:
        """Yield (method, address, body) of everything that is asked."""
        for route, pattern in routes(get_resolver().url_patterns):
            if route in SKIPPED:
                continue
            address = self.address(route)
            yield "GET", address, None
            for method in written_by(pattern):
                yield method, address, None
            if route.startswith(("admin/kb/", "admin/qa/")):
                yield "POST", address, urlencode({"post": "yes"})
        for _, method, address, body in bulk_actions(self.rows):
            yield method, address, body
        for _, method, address, body in inbox_changes(self.rows):
            yield method, address, body
        for address in (
            f"/admin/kb/entry/?q={MARK}",
            f"/admin/search/?s={MARK}",
            f"/api/v1/entries?q={MARK}&knowledge_base=travel",
            "/api/v1/dashboard?knowledge_base=travel",
            "/admin/qa/answer/dashboard/?knowledge_base=travel",
            "/inbox?whose=others",
            "/playground?knowledge_base=travel",
            "/api/v1/entries.csv?knowledge_base=travel",
            "/admin/autocomplete/?app_label=qa&model_name=savedcase&field_name=entries",
        ):
            yield "GET", address, None
        yield from self.writes()

    def writes(self) -> Iterator["Asked"]:
        """Yield what would change Travel if the caller were its curator."""
        rows, api = self.rows, "/api/v1"
        entry, document = rows.entry.pk, rows.document.pk
        fact = {"text": "A fact.", "audience": "everyone"}
        keep = {"audience": "everyone", "verify": True}
        for method, path, body in (
            ("POST", "/entries", fact | {"knowledge_base": "travel"}),
            ("POST", "/entries", fact | {"document": document}),
            ("POST", "/entries", fact | {"section": rows.section.pk}),
            ("PATCH", f"/entries/{entry}", {"text": "Another."}),
            ("POST", f"/entries/{entry}/verify", {}),
            ("POST", f"/entries/{entry}/retire", {}),
            ("DELETE", f"/entries/{entry}", None),
            ("POST", f"/entries/{entry}/postpone", {"days": 7}),
            (
                "POST", "/documents",
                {"title": "T", "audience": "everyone", "knowledge_base": "travel"},
            ),
            ("PATCH", f"/documents/{document}", {"title": "Another"}),
            ("PATCH", f"/documents/{document}", {"sections": []}),
            ("POST", f"/imports/{rows.imported.pk}/apply", None),
            (
                "POST", "/sources",
                {
                    "name": "n", "kind": "folder", "address": "/srv/x",
                    "knowledge_base": "travel", "rules": [{"audience": "everyone"}],
                },
            ),
            ("POST", f"/sources/{rows.followed.pk}/check", {}),
            (
                "POST", f"/conflicts/{rows.conflict.pk}/resolve",
                {"action": "keep_both", "reason": "r"},
            ),
            (
                "POST", "/proposals/decide",
                {"ids": [rows.proposal.pk], "decision": "verify"},
            ),
            (
                "POST", "/proposals",
                {"knowledge_base": "travel", "audience": "everyone", "seeds": ["x"]},
            ),
            ("POST", f"/gaps/{rows.gap.pk}/draft", {"text": "x", **keep}),
            ("POST", f"/gaps/{rows.gap.pk}/dismiss", {"reason": "x"}),
            ("PUT", f"/gaps/{rows.gap.pk}/owner", {"owner": "ann"}),
            (
                "POST", f"/escalations/{self.escalation.pk}/reply",
                {"text": "x", "keep": keep},
            ),
            ("PUT", f"/escalations/{self.escalation.pk}/assignee", None),
            ("PUT", f"/reviews/{self.review.pk}/lock", None),
            (
                "PUT", f"/reviews/{self.review.pk}/judgement",
                {"should_be_answered": True},
            ),
            ("PUT", f"/votes/{self.vote.pk}/handled", None),
            ("PUT", f"/answers/{self.answer.pk}/vote", {"rating": "up"}),
            ("POST", "/exports", {"knowledge_base": "travel"}),
            (
                "POST", "/reviews/samples",
                {
                    "knowledge_base": "travel", "hours": 1, "minutes_a_review": 2,
                    "second_share": 0, "since": "2026-01-01T00:00:00Z",
                    "until": "2026-01-08T00:00:00Z", "seed": 1,
                },
            ),
        ):  # fmt: skip
            yield method, f"{api}{path}", body
        for act in ("verify", "retire", "hand_over", "postpone"):
            form = {
                "entry": entry,
                "action": act,
                "revision": 1,
                "days": 7,
                "owner": "ann",
            }
            yield "POST", "/admin/kb/entry/due/", urlencode(form)
        yield (
            "POST",
            f"/admin/kb/conflict/{rows.conflict.pk}/change/",
            urlencode({"resolution": f"merge {entry}", "reason": "r"}),
        )
        form = {
            "knowledge_base": rows.document.knowledge_base_id, "question": "x",
            "expect": "refused",
        }  # fmt: skip
        yield "POST", "/admin/qa/savedcase/add/", urlencode(form)
        tried = form | {"knowledge_base": "travel"}
        yield "POST", "/playground/cases", urlencode(tried)
        yield "POST", "/admin/kb/entry/exports/", urlencode(form)
        form = {
            "knowledge_base": rows.document.knowledge_base_id, "text": "A fact.",
            "state": "draft", "language": "en", "origin": "manual",
            "audience": make_audience().pk, "confidence": "0.5",
        }  # fmt: skip
        yield "POST", "/admin/kb/entry/add/", urlencode(form)


def curator_of(slug: str, name: str) -> User:
    user = make_user(role=None, username=name)
    set_knowledge_roles(user, {make_knowledge_base(slug).pk: "curator"})
    return user


def state() -> list[object]:
    """Return what the tables of work hold, hidden rows too."""
    found: list[object] = []
    with connection.cursor() as cursor:
        for model in WORK:
            table = model._meta.db_table
            cursor.execute(
                f"SELECT md5(string_agg(t::text, '' ORDER BY t.id)) FROM {table} t"
            )  # our own names
            found.append((table, cursor.fetchone()))
    return found


Asked = tuple[str, str, object]


def ask_all(
    user: User, asked: Iterable[Asked]
) -> tuple[dict[str, int], dict[str, int], set[int]]:
    """Return what showed the mark, what changed work, each by status, and all statuses."""
    client = Client(raise_request_exception=False)
    shown: dict[str, int] = {}
    changed: dict[str, int] = {}
    statuses: set[int] = set()
    for method, address, body in list(asked):
        client.force_login(user)  # one address signs out
        is_form = isinstance(body, str)
        kind = "application/x-www-form-urlencoded" if is_form else "application/json"
        sent = body if is_form else json.dumps(body or {})
        with transaction.atomic():
            before = [] if method == "GET" else state()
            got = client.generic(method, address, sent, kind)
            content = got.getvalue().decode("utf-8", "replace")
            if method != "GET" and state() != before:
                changed[f"{method} {address} {body}"] = got.status_code
            transaction.set_rollback(True)
        statuses.add(got.status_code)
        if MARK in content and MARK not in address:
            shown[f"{method} {address} {body}"] = got.status_code
    return shown, changed, statuses


# Where work waits: each shows the mark to who works on it.
LISTS = (
    "/admin/kb/entry/", "/admin/kb/conflict/?state__exact=open", "/admin/kb/proposal/",
    "/admin/kb/import/", "/admin/kb/followedsource/", "/admin/qa/gap/?state__exact=open",
    "/admin/qa/savedcase/", "/admin/qa/answer/", "/admin/qa/escalation/",
    "/admin/qa/review/", "/admin/qa/vote/", "/inbox", "/api/v1/entries",
    "/api/v1/conflicts", "/api/v1/proposals", "/api/v1/imports", "/api/v1/sources",
    "/api/v1/gaps", "/api/v1/answers", "/api/v1/escalations", "/api/v1/reviews",
    "/api/v1/votes", "/api/v1/inbox",
)  # fmt: skip


@pytest.fixture
def work():
    owner = make_user(username="owner")
    ann = curator_of("cards", "ann")
    make_entry("A replacement card costs 12 euros.")
    found = Work(owner)
    Import.objects.update(created_by=ann)  # of the time when she was one of Travel too
    return found


def test_of_work_in_another_knowledge_base_no_list_shows_and_no_write_does_anything(
    work,
):
    ann = User.objects.get(username="ann")
    lists: list[Asked] = [("GET", address, None) for address in LISTS]

    shown, changed, statuses = ask_all(ann, [*lists, *work.writes()])

    assert shown == {}
    assert changed == {}
    assert not {each for each in statuses if each >= 500}


def test_of_work_in_another_knowledge_base_nothing_is_shown_or_done(work):
    ann = User.objects.get(username="ann")

    shown, changed, statuses = ask_all(ann, work.questions())

    assert shown == {}
    assert changed == {}
    assert not {each for each in statuses if each >= 500}


def test_by_the_same_requests_its_own_curator_sees_and_changes_it(work):
    tim = curator_of("travel", "tim")
    Import.objects.update(created_by=tim)

    lists: list[Asked] = [("GET", address, None) for address in LISTS]
    shown, changed, _ = ask_all(tim, [*lists, *work.writes()])

    assert {f"GET {address} None" for address in LISTS} <= shown.keys()
    assert len(changed) >= 24, changed


def test_a_job_stops_where_its_owner_has_lost_the_role(work):
    ann = User.objects.get(username="ann")
    entry = make_entry("Lounges cost 30 euros.", knowledge_base=make_knowledge_base())
    ids = [entry.pk, work.rows.entry.pk]
    job = enqueue_change(ids, BulkChange(Action.RETIRE), by=ann)

    run(job)

    entry.refresh_from_db()
    work.rows.entry.refresh_from_db()
    assert (entry.state, work.rows.entry.state) == ("retired", "draft")
    assert job.result["failed"] == 1
    assert "Travel" in job.result["failures"][0][1]

    late = enqueue_change([entry.pk], BulkChange(Action.RESTORE), by=ann)
    set_knowledge_roles(ann, {})
    with pytest.raises(InvalidKnowledgeError, match="role curator"):
        run(late)


def run(job: Job) -> None:
    run_job(job.pk, {KIND: change_in_background})
    job.refresh_from_db()
