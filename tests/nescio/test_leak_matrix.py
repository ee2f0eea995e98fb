"""Every address, asked by every role: what it may not see does not exist for it.

Each role asks every address twice, once while a secret is there and once when it is gone,
and must get the same answers: same status, same body, whether it asks for a list, a
search, a form, or for the secret's own address. A new address is asked like the others
by itself; one with a parameter that is not known here fails until it is.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from difflib import unified_diff
from itertools import islice

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import CharField, JSONField, TextField
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse
from django.utils import timezone
from django.utils.http import urlencode

from accounts.acting import as_owner
from accounts.models import AuditEntry
from accounts.roles import Role
from accounts.services import create_token
from integrations.widget.models import Widget
from integrations.widget.tokens import issue_token
from kb.entries.services import edit_entry
from kb.models import (
    Comment,
    Conflict,
    Document,
    Entry,
    FollowedDocument,
    FollowedSource,
    FollowRule,
    Import,
    Proposal,
    Section,
)
from qa.evaluation.saved_cases import save_case
from qa.models import Escalation, Gap, Review, SavedCase, SelfCalibration
from qa.policies.services import ensure_default_policy
from tests.factories import (
    make_audience,
    make_document,
    make_entry,
    make_knowledge_base,
    make_user,
    set_role,
)
from tests.nescio.leak_table import ROLES, Asked, cells
from tests.nescio.routes import filled, routes
from tests.qa.answer_rows import make_answer

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

MARK = "Zwirbelgold"
QUESTION = f"What is the {MARK} limit?"
ABSENT = "00000000-0000-4000-8000-000000000000"

# Asked with GET only, or not at all, with the reason.
SKIPPED = {
    "admin/jsi18n/": "words of the calendar",
    "admin/(?P<url>.*)$": "whatever is no address",
    "admin/^(?P<app_label>auth|accounts|jobs|kb|qa|probes|integrations)/$": "asked as admin/kb/",
}
EXTRA = (
    "/admin/kb/",
    f"/api/v1/entries?q={MARK}",
    f"/api/v1/documents?q={MARK}",
    f"/admin/kb/entry/?q={MARK}",
    f"/admin/kb/document/?q={MARK}",
    f"/admin/search/?s={MARK}",
    f"/knowledge?q={MARK}",
    "/knowledge?state=verified",
    "/inbox?whose=others",
    "/admin/autocomplete/?app_label=kb&model_name=entry&field_name=document"
    f"&term={MARK}",
)
WRITES = ("POST", "PUT", "PATCH", "DELETE")
_FORM = "application/x-www-form-urlencoded"
# What differs from one time to the next, whoever asks for whatever.
_PASSING = [
    (re.compile(r'name="csrfmiddlewaretoken" value="[^"]*"'), "csrf"),
    (re.compile(r'"X-CSRFToken": "[^"]*"|csrf_?token[^,}<]*', re.IGNORECASE), "csrf"),
    (re.compile(r'name="seed" value="\d+"'), "seed"),
    (re.compile(r"nonce[=-]\S+"), "nonce"),
    (re.compile(r'"milliseconds": ?\{[^}]*\}'), "milliseconds"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*(Z|\+00:00)?"), "time"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "day"),  # a run may pass midnight
    (re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"), "id"),
    (re.compile(r"(under )?\d+(\.\d+)? ?(ms|s)\b"), "duration"),
    (re.compile(r'class="bar-time"[^>]*'), "bar of a duration"),
    (re.compile(r'"created":\d+'), "time"),
    (re.compile(r'"token":"[^"]*"'), "token"),
]


@dataclass(frozen=True, slots=True)
class Got:
    """What somebody got."""

    status: int
    body: str
    shows: bool


class Asker:
    """One role and how it signs in."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.client = Client(raise_request_exception=False)
        self.headers: dict[str, str] = {}
        if name == "anonymous":
            return
        groups = ["vault"] if name == "member" else []
        user = make_user(role=None, username=f"asking {name}", groups=groups)
        if name == "superuser":
            User.objects.filter(pk=user.pk).update(is_staff=True, is_superuser=True)
            user.refresh_from_db()
        elif name != "no role":
            agents = dict.fromkeys(["integrator", "widget"], Role.AGENT)
            role = {**agents, "member": Role.CURATOR}.get(name)
            set_role(user, role=role or Role(name))
            user.groups.add(*[g for g in _groups() if g.name in groups])
        if name == "integrator":
            secret = create_token(user=user, name="test").secret
            self.headers = {"Authorization": f"Token {secret}"}
        elif name == "widget":
            site = "https://intranet.example"
            widget = Widget.objects.create(
                name="vault",  # as the addresses name a row
                knowledge_base=make_knowledge_base(),
                account=user,
                origins=[site],
            )
            token = issue_token(widget, site, "")
            self.headers = {"Authorization": f"Bearer {token}", "Origin": site}
        else:
            self.client.force_login(user)

    def ask(self, method: str, address: str, body: object = None) -> Got:
        """Ask, and take back whatever it changed; a `str` is the body of a form."""
        is_form = isinstance(body, str)
        cookies = deepcopy(self.client.cookies)  # one address signs out
        with transaction.atomic():
            response = self.client.generic(
                method,
                address,
                body if is_form else json.dumps(body or {}),
                _FORM if is_form else "application/json",
                headers=self.headers,
            )
            content = response.getvalue().decode("utf-8", "replace")
            transaction.set_rollback(True)
        self.client.cookies = cookies
        told = f"{response.headers} {content}"
        for pattern, name in _PASSING:
            content = pattern.sub(name, content)
        asked_for = MARK in address or MARK in json.dumps(body)
        # A page repeats what it was asked for; the difference tells whether it knew more.
        return Got(response.status_code, content, MARK in told and not asked_for)


def _groups():
    return make_audience("vault", groups=["vault"]).groups.all()


OUTSIDERS = ROLES[:8]


@dataclass(frozen=True, slots=True)
class Secret:
    """Rows of one audience, each of which says the mark."""

    entry: Entry
    document: Document
    section: Section
    conflict: Conflict
    proposal: Proposal
    imported: Import
    gap: Gap
    case: SavedCase
    comment: Comment
    followed: FollowedSource

    def forget(self) -> None:
        """Delete it all."""
        with as_owner("tests"):
            self.imported.delete()
            self.followed.delete()
            self.gap.delete()
            self.case.delete()
            Entry.objects.filter(document=self.document).delete()
            self.document.delete()
            # The removal is news for who reads the audit; it came after the secret.
            gone = AuditEntry.objects.filter(action="delete")
            gone.filter(kind__in=["comment", "source", "source audience"]).delete()


def make_secret() -> Secret:
    vault = make_audience("vault", groups=["vault"])
    document = make_document(
        f"{MARK} handbook", audience=vault, source=f"{MARK.lower()}.pdf"
    )
    section = Section.objects.create(
        document=document, heading=f"{MARK} limits", position=0
    )
    entry = make_entry(
        f"The {MARK} limit is 900 euros.",
        question=QUESTION,
        section=section,
        audience=vault,
    )
    other = make_entry(
        f"The {MARK} limit is 800 euros.", document=document, audience=vault
    )
    edit_entry(
        entry_id=entry.pk,
        author=entry.verified_by,
        may_verify=True,
        text=f"The {MARK} limit is 950 euros.",
    )
    conflict, _ = Conflict.objects.get_or_create(
        first=entry,
        second=other,
        defaults={
            "first_revision": 2,
            "second_revision": 1,
            "texts_sha256": "0" * 64,
            "kind": Conflict.Kind.CONTRADICTION,
            "score": 0.9,
            "distance": 0.1,
            "model": "test",
        },
    )
    proposal = Proposal.objects.create(
        knowledge_base=entry.knowledge_base,
        entry=other,
        seed_question=QUESTION,
        question=QUESTION,
        question_sha256="0" * 64,
        answer=f"{MARK}: 800 euros.",
        sentence=f"The {MARK} limit is 800 euros.",
        stated=0.5,
        agreement=0.5,
        confidence=0.5,
        model_name="test",
        model_fingerprint="0" * 64,
        prompt_version="1",
        random_seed=0,
    )
    imported = Import.objects.create(
        knowledge_base=entry.knowledge_base,
        audience=vault,
        file=f"{MARK}.csv",
        file_name=f"{MARK}.csv",
        file_sha256="0" * 64,
        format="csv",
        source=f"{MARK}.csv",
        created_by=entry.verified_by,
        examples={
            "new": [{"place": "line 1", "text": f"The {MARK} limit is 900 euros."}]
        },
    )
    gap = Gap.objects.create(
        knowledge_base=entry.knowledge_base,
        question=QUESTION,
        vector=[1.0] * 384,
        state=Gap.State.DRAFTED,
        drafted_at=timezone.now(),
        first_seen=timezone.now(),
        last_seen=timezone.now(),
        entry=entry,
    )
    found = User.objects.filter(username="insider").first()
    insider = found or make_user(Role.CURATOR, username="insider", groups=["vault"])
    case = save_case(
        QUESTION,
        knowledge_base=entry.knowledge_base,
        expects_answer=True,
        entries=[entry.pk],
        asker=insider,
        by=insider,
    )
    comment = Comment.objects.create(
        entry=entry, author=entry.verified_by, text=f"{MARK} was 900."
    )
    followed = FollowedSource.objects.create(
        name=f"{MARK} pages", kind="folder", address=f"/srv/{MARK}", every_hours=24,
        knowledge_base=entry.knowledge_base, owner=entry.verified_by,
        note=f"{MARK} is gone.", checked_at=timezone.now(),
    )  # fmt: skip
    FollowRule.objects.create(source=followed, position=0, audience=vault, group=MARK)
    FollowedDocument.objects.create(source=followed, key=f"{MARK}.md", error=MARK)
    return Secret(
        entry, document, section, conflict, proposal, imported, gap, case, comment,
        followed,
    )  # fmt: skip


def parameters(secret: Secret, route: str) -> dict[str, object]:
    """Return a value for every parameter that an address may have: the secret's where it
    is one of the secret."""
    rows = {
        "kb/entry": secret.entry.pk,
        "kb/document": secret.document.pk,
        "kb/conflict": secret.conflict.pk,
        "kb/proposal": secret.proposal.pk,
        "kb/import": secret.imported.pk,
        "kb/followedsource": secret.followed.pk,
        "kb/audience": make_audience("vault").pk,
        "qa/gap": secret.gap.pk,
        "qa/savedcase": secret.case.pk,
    }
    model = "/".join(route.split("/")[1:3])
    return {
        "entry_id": secret.entry.pk,
        "document_id": secret.document.pk,
        "conflict_id": secret.conflict.pk,
        "proposal_id": secret.proposal.pk,
        "import_id": secret.imported.pk,
        "source_id": secret.followed.pk,
        "number": 1,
        "object_id": rows.get(model, 1),
        "id": 1,
        "pk": 1,
        "policy_id": 1,
        "vote_id": 1,
        "escalation_id": 1,
        "gap_id": secret.gap.pk,
        "comment_id": secret.comment.pk,
        "notice_id": 1,
        "synonym_id": 1,
        "endpoint_id": 1,
        "delivery_id": 1,
        "review_id": 1,
        "job_id": ABSENT,
        "token_id": ABSENT,
        "user_id": 1,
        "token": "x",
        "uidb64": "x",
        "username": "x",
        "answer_id": ABSENT,
        "slug": "vault",
        "name": "curve",
        "model": "cards",
        "content_type_id": 1,
    }


def questions(secret: Secret) -> Iterator[tuple[str, str, str, object]]:
    """Yield (route, method, address, body) of everything that is asked."""
    for route, pattern in routes(get_resolver().url_patterns):
        if route in SKIPPED:
            continue
        address = filled(route, parameters(secret, route))
        yield route, "GET", address, None
        for method in written_by(pattern):
            yield route, method, address, None
        if route.startswith("admin/") and pattern.name:
            # Confirmed: a deletion, an action or a form with nothing else in it.
            yield route, "POST", address, urlencode({"post": "yes"})
    yield from bulk_actions(secret)
    yield from lookups()
    yield from inbox_changes(secret)
    for address in EXTRA:
        yield address.lstrip("/").split("?")[0], "GET", address, None
    for route, body in (
        ("api/v1/ask", {"question": QUESTION}),
        ("api/v1/ask", {"question": QUESTION, "as_of": timezone.now().isoformat()}),
        ("api/v1/search", {"question": QUESTION, "as_of": timezone.now().isoformat()}),
        (
            "v1/chat/completions",
            {"model": "cards", "messages": [{"role": "user", "content": QUESTION}]},
        ),
        ("widget/<slug:slug>/ask", {"question": QUESTION}),
        (
            "dify/retrieval",
            {
                "knowledge_id": "cards",
                "query": QUESTION,
                "retrieval_setting": {"top_k": 5, "score_threshold": 0.0},
            },
        ),
        ("api/v1/search", {"question": QUESTION}),
        ("api/v1/search", {"query": QUESTION}),
        ("api/v1/entries", {"text": "x", "document": secret.document.pk}),
        ("api/v1/entries", {"text": "x", "audience": "vault"}),
        ("api/v1/entries", {"text": "x", "section": secret.section.pk}),
        ("api/v1/documents", {"title": "x", "audience": "vault"}),
    ):
        yield route, "POST", f"/{route.replace('<slug:slug>', 'vault')}", body
    then = urlencode({"as_of": timezone.now().isoformat()})
    yield "api/v1/entries.csv", "GET", f"/api/v1/entries.csv?{then}", None
    # Without its mark, so that an answer tells whether it was found.
    question = "How high is the limit in euros?"
    tried = {"question": question, "knowledge_base": "cards", "gates_only": "on"}
    # Also as somebody who may see it.
    for asker in ("", "insider"):
        form = urlencode(tried | {"asker": asker})
        yield "playground", "POST", "/playground", form
    case = tried | {"expect": "answered", "entries": str(secret.entry.pk)}
    yield "playground/cases", "POST", "/playground/cases", urlencode(case)
    for name in ("document", "section", "audience", "entry"):
        address = f"/api/v1/entries?{name}={parameters(secret, '')['slug'] if name == 'audience' else getattr(secret, name).pk}"
        yield "api/v1/entries", "GET", address, None


def inbox_changes(secret: Secret) -> Iterator[tuple[str, str, str, object]]:
    """Yield what the inbox and an entry's page do, with the secret's rows."""
    for row in (
        secret.entry, secret.conflict, secret.proposal, secret.imported, secret.gap,
    ):  # fmt: skip
        for action in ("take", "release", "wake"):
            named = {
                "kind": str(row._meta.model_name),
                "subject": str(row.pk),
                "action": action,
            }
            yield "inbox/change", "POST", "/inbox/change", urlencode(named)
    for act in ("edit", "flag", "still-true", "validity", "retire", "restore"):
        address = f"/knowledge/entries/{secret.entry.pk}/{act}"
        yield f"knowledge/entries/<int:entry_id>/{act}", "POST", address, ""
    yield "undo", "POST", "/undo", urlencode({"undo": "x"})
    route, address = "knowledge/entries/<int:entry_id>/comments", "knowledge/entries"
    text = urlencode({"text": "x"})
    yield route, "POST", f"/{address}/{secret.entry.pk}/comments", text
    address = f"/knowledge/comments/{secret.comment.pk}/delete"
    yield "knowledge/comments/<int:comment_id>/delete", "POST", address, ""


def written_by(pattern: URLPattern) -> list[str]:
    """Return the writing methods of an endpoint; a ViewSet's are bound by its route."""
    bound = getattr(pattern.callback, "actions", None) or {}
    view = getattr(pattern.callback, "cls", None)
    names = [each.lower() for each in WRITES]
    return [each.upper() for each in names if each in bound or hasattr(view, each)]


def bulk_actions(secret: Secret) -> Iterator[tuple[str, str, str, object]]:
    """Yield every action of every list of the admin, with the secret's row chosen."""
    for row in (
        secret.entry, secret.document, secret.conflict, secret.proposal, secret.imported,
        secret.case, secret.followed,
    ):  # fmt: skip
        kind = type(row)
        desk = admin.site.get_model_admin(kind)
        app, name = kind._meta.app_label, kind._meta.model_name
        route = f"admin/{app}/{name}/"
        address = reverse(f"admin:{app}_{name}_changelist")
        names = [
            action if isinstance(action, str) else action.__name__
            for action in desk.actions or ()
        ]
        for name in (*names, "delete_selected"):
            chosen = {"action": name, "_selected_action": str(row.pk), "post": "yes"}
            yield route, "POST", address, urlencode(chosen)


def lookups() -> Iterator[tuple[str, str, str, object]]:
    """Yield every list of the admin, narrowed by what its rows' texts may hold."""
    for model in admin.site._registry:
        meta = model._meta
        address = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
        for field in meta.concrete_fields:
            if isinstance(field, CharField | TextField | JSONField):
                narrowed = urlencode({f"{field.name}__regex": f"{MARK[:4]}.*"})
                yield address.lstrip("/"), "GET", f"{address}?{narrowed}", None


def ask_everything(
    asker: Asker, asked: Sequence[tuple[str, str, str, object]]
) -> Mapping[Asked, Got]:
    """Return what `asker` got for each question."""
    return {
        (method, address, json.dumps(body)): asker.ask(method, address, body)
        for _route, method, address, body in asked
    }


def routes_of(asked: Sequence[tuple[str, str, str, object]]) -> Mapping[Asked, str]:
    """Return the route of each question."""
    return {(method, at, json.dumps(body)): route for route, method, at, body in asked}


# The activation page shows how many test cases of its reader's hidden audiences fail or were
# not asked, and never which: a version that answers others wrongly must not become active
# because nobody who looks may see it.
COUNTS_HIDDEN_CASES = {
    "/admin/qa/policy/1/activate_this/",
    "/api/v1/policies/1/test-cases",
}


def difference(there: Got, gone: Got) -> tuple[int, int, list[str]]:
    """Return the two statuses and the first lines that differ: a page is too long to read."""
    lines = unified_diff(there.body.splitlines(), gone.body.splitlines(), n=0)
    return there.status, gone.status, [line[:300] for line in islice(lines, 20)]


@pytest.fixture
def world():
    """Make what everybody may see, so that lists are not empty.

    No user has the number of another row, whose address would be this user's page: a link
    to sign in is another each time.
    """
    with as_owner("tests"), connection.cursor() as sql:
        sql.execute("ALTER SEQUENCE auth_user_id_seq RESTART WITH 1000000")
    policy = ensure_default_policy(make_knowledge_base())
    SelfCalibration.objects.create(
        knowledge_base=policy.knowledge_base, policy=policy, target=0.05,
        unanswerable=0.5, min_entry_answer=0.8, entries=24, own=24, foreign=60,
        shown=20, wrong=1, answered_share=0.8, curve=[[0.8, 0.8, 0.04]],
    )  # fmt: skip
    make_entry("A replacement card costs 12 euros.", document=make_document())
    make_audience("vault", groups=["vault"])
    make_user(Role.CURATOR, username="insider", groups=["vault"])


@pytest.mark.parametrize("role", OUTSIDERS)
def test_a_secret_leaves_no_trace(world, role, record_property):
    asker = Asker(role)
    secret = make_secret()

    asked = list(questions(secret))

    there = ask_everything(asker, asked)
    secret.forget()
    gone = ask_everything(asker, asked)
    leaks = {
        each
        for each, got in there.items()
        if got.shows or (got != gone[each] and each[1] not in COUNTS_HIDDEN_CASES)
    }
    statuses = {each: got.status for each, got in there.items()}
    record_property(role, cells(routes_of(asked), statuses, leaks))

    assert {each: difference(there[each], gone[each]) for each in leaks} == {}
    assert [each for each, status in statuses.items() if status >= 500] == []
    narrowed = {address for _, _, address, _ in lookups()}
    taken = {status for each, status in statuses.items() if each[1] in narrowed}
    assert taken <= {302, 400, 403}


@pytest.mark.parametrize("role", ["member", "superuser"])
def test_who_may_see_it_does_by_the_same_questions(
    world, role, record_property, pytestconfig
):
    """The matrix can fail: the very questions show the secret to who may see it.

    Those that read are enough for that; the columns of the table want them all.
    """
    asker = Asker(role)

    asked = list(questions(make_secret()))
    if not pytestconfig.getoption("--leak-matrix"):
        narrowed = {address for _, _, address, _ in lookups()}
        asked = [e for e in asked if e[1] == "GET" and e[2] not in narrowed]

    got = ask_everything(asker, asked)
    by_route = routes_of(asked)
    shown_at = {by_route[each] for each, told in got.items() if told.shows}
    record_property(role, dict.fromkeys(shown_at, "shown"))

    shown = {address for (_, address, _), each in got.items() if each.shows}
    assert len(shown) >= 12, shown


@pytest.mark.parametrize("role", OUTSIDERS)
def test_what_was_answered_from_a_secret_is_told_to_nobody_else(world, role):
    secret = make_secret()
    insider = User.objects.get(username="insider")
    answer = make_answer(
        insider,
        question="How high is the limit?",
        cited=(secret.entry,),
        text=f"{MARK}: 950 euros.",
        reasoning=f"{MARK} says so.",
        generation={"raw": MARK, "answer": MARK},
    )
    escalation = Escalation.objects.create(
        answer=answer,
        raised_by=insider,
        state=Escalation.State.ANSWERED,
        reply=f"The {MARK} limit.",
        replied_by=insider,
        replied_at=timezone.now(),
        entry=secret.entry,
    )
    review = Review.objects.create(
        answer=answer, note=f"{MARK}.", ideal_answer=f"The {MARK} limit."
    )
    asker = Asker(role)

    for route, _pattern in routes(get_resolver().url_patterns):
        if route in SKIPPED:
            continue
        chosen = parameters(secret, route) | {
            "review_id": review.pk,
            "answer_id": answer.pk,
            "escalation_id": escalation.pk,
        }
        if "/qa/answer/" in route:
            chosen["object_id"] = answer.pk
        if "/qa/review/" in route:
            chosen["object_id"] = review.pk
        got = asker.ask("GET", filled(route, chosen))
        assert not got.shows, route
        assert got.status < 500, route
