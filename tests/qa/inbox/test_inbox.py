"""One list of all that waits for a person: what is in it, whose it is, what hides it."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.authentication import find_user
from accounts.models import AuditEntry, KnowledgeRole
from accounts.roles import Role
from kb.models import Conflict, Entry, Import, Proposal
from kb.upkeep.models import Flag
from qa.exceptions import InboxItemNotFoundError, InvalidInboxError
from qa.gaps.escalations import assign as assign_escalation
from qa.gaps.escalations import escalate
from qa.inbox.models import InboxMark, Kind
from qa.inbox.services import assign, count_waiting, read_inbox, snooze
from qa.inbox.waiting import Scope, reader_of, waiting
from qa.models import Gap, Review
from qa.reviews.services import review_queue
from tests.clients import page_client
from tests.factories import (
    make_audience,
    make_curator,
    make_entry,
    make_knowledge_base,
    make_tag,
    make_user,
    set_role,
)
from tests.qa.answer_rows import make_answer

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

QUESTION = "What does a wire transfer cost?"


@pytest.fixture
def curator():
    user = make_curator()
    set_role(user, role=Role.CURATOR)
    return user


def make_escalation(**fields):
    asker = make_user()
    return escalate(
        make_answer(asker, question=QUESTION, **fields).pk, user=asker, note="Urgent."
    )


def make_one_of_each(curator) -> dict[Kind, int]:
    """Let one thing of each kind wait, and return their ids."""
    base, now = make_knowledge_base(), timezone.now()
    due = make_entry("An account costs 3 euros.", state="in_review")
    first, second = make_entry("It costs 3 euros."), make_entry("It costs 4 euros.")
    conflict, _ = Conflict.objects.get_or_create(
        first=first, second=second, defaults={
            "first_revision": 1, "second_revision": 1, "texts_sha256": "0" * 64,
            "kind": "contradiction", "score": 0.9, "distance": 0.1, "model": "test",
        },
    )  # fmt: skip
    proposed = make_entry("A transfer costs 1 euro.", confidence=0.5)
    proposal = Proposal.objects.create(
        knowledge_base=base, entry=proposed, seed_question=QUESTION, question=QUESTION,
        question_sha256="0" * 64, answer="1 euro.", sentence="A transfer costs 1 euro.",
        stated=0.5, agreement=0.5, confidence=0.5, model_name="test",
        model_fingerprint="0" * 64, prompt_version="1", random_seed=0,
    )  # fmt: skip
    imported = Import.objects.create(
        knowledge_base=base, audience=make_audience(), file="a.csv", file_name="a.csv",
        file_sha256="0" * 64, format="csv", source="a.csv", created_by=curator,
        state=Import.State.PLANNED,
    )  # fmt: skip
    gap = Gap.objects.create(
        knowledge_base=base, question="Is there a student card?", vector=[1.0] * 384,
        first_seen=now, last_seen=now, questions=3, askers=2,
    )  # fmt: skip
    judged = make_answer(make_user(), question="Is it free?", cited=(first,))
    return {
        Kind.ESCALATION: make_escalation().pk,
        Kind.IMPORT: imported.pk,
        Kind.REVIEW: Review.objects.create(answer=judged).pk,
        Kind.CONFLICT: conflict.pk,
        Kind.ENTRY: due.pk,
        Kind.PROPOSAL: proposal.pk,
        Kind.GAP: gap.pk,
    }


def listed(user, scope=Scope.WAITING, **options) -> list[tuple[Kind, int]]:
    page = read_inbox(user, scope=scope, size=50, **options)
    return [(item.kind, item.subject) for item in page.items]


def test_all_that_waits_is_in_one_list_and_each_row_says_why_and_where(curator):
    made = make_one_of_each(curator)

    page = read_inbox(curator, size=50)

    assert {item.kind: item.subject for item in page.items} == made
    assert not page.has_more
    by_kind = {item.kind: item for item in page.items}
    # What is one's own comes first.
    assert page.items[0].kind == Kind.IMPORT
    assert by_kind[Kind.IMPORT].why == "You imported it"
    escalation = by_kind[Kind.ESCALATION]
    assert (escalation.title, escalation.note) == (QUESTION, "“Urgent.”")
    assert escalation.why == "For any expert"
    assert escalation.knowledge_base.slug == "cards"
    assert by_kind[Kind.ENTRY].note == "In review; used in 0 answers."
    assert by_kind[Kind.GAP].note == "Asked 3 times by 2 people, and not answered."
    assert count_waiting(curator) == dict.fromkeys(Kind, 1)
    client = page_client(curator)
    for item in page.items:
        assert client.get(item.address).status_code == 200, item.address


def test_an_expert_gets_what_experts_deal_with_and_the_entries_that_are_theirs(curator):
    made = make_one_of_each(curator)
    expert = make_user(Role.SME)
    assert set(count_waiting(expert)) == {
        Kind.ESCALATION, Kind.REVIEW, Kind.ENTRY, Kind.GAP,
    }  # fmt: skip
    assert (Kind.ENTRY, made[Kind.ENTRY]) not in listed(expert)

    Entry.objects.filter(pk=made[Kind.ENTRY]).update(owner=expert)

    (first, *_) = read_inbox(expert, size=50).items
    assert (first.kind, first.why) == (Kind.ENTRY, "You own it")
    # It is the owner's now, and nobody else's.
    assert (Kind.ENTRY, made[Kind.ENTRY]) not in listed(curator)
    assert (Kind.ENTRY, made[Kind.ENTRY]) in listed(curator, Scope.OTHERS)


def test_experts_get_what_is_about_their_tags_first():
    expert = make_user(Role.SME)
    make_escalation()
    tagged = make_escalation(product_line=make_tag("gold-card", expert))

    (first, second) = read_inbox(expert, size=50).items

    assert (first.subject, first.why) == (
        tagged.pk, "You are an expert for Gold-Card",
    )  # fmt: skip
    assert listed(expert, Scope.MINE) == [(Kind.ESCALATION, tagged.pk)]
    assert second.why == "For any expert"


@pytest.mark.parametrize("kind", list(Kind))
def test_what_is_assigned_is_one_persons_alone(curator, kind):
    if kind == Kind.IMPORT:  # theirs who imported it
        return
    other = make_user(Role.CURATOR, username="ben")
    subject = make_one_of_each(curator)[kind]

    assert assign(kind, subject, to=other, by=curator) is None

    assert (kind, subject) not in listed(curator)
    assert (kind, subject) in listed(curator, Scope.OTHERS)
    assert listed(other, Scope.MINE) == [(kind, subject)]
    (item,) = read_inbox(other, scope=Scope.MINE, size=1).items
    assert (item.why, item.assignee) == ("Assigned to you", other)
    written = AuditEntry.objects.filter(kind="inbox").latest("pk")
    assert "ben" in written.subject

    assert assign(kind, subject, to=None, by=curator) == other
    assert (kind, subject) in listed(curator)


def test_an_inactive_assignee_holds_nothing_back(curator):
    sent = make_escalation()
    gone = make_user(Role.SME)
    assign_escalation(sent.pk, to=gone, by=curator)
    assert listed(curator) == []

    gone.is_active = False
    gone.save()

    assert listed(curator) == [(Kind.ESCALATION, sent.pk)]


def test_who_lost_the_role_there_holds_nothing_back(curator):
    ids = make_one_of_each(curator)
    base, moved = make_knowledge_base(), make_user()
    role = KnowledgeRole.objects.create(
        user=moved, knowledge_base=base, role=Role.CURATOR
    )
    kinds = [kind for kind in ids if kind is not Kind.IMPORT]
    for kind in kinds:
        assign(kind, ids[kind], to=moved, by=curator)
    assert {kind for kind, _ in listed(curator)}.isdisjoint(kinds)

    role.knowledge_base = make_knowledge_base("loans")
    role.save()

    assert {kind for kind, _ in listed(curator)} >= {*kinds}
    assert listed(curator, scope=Scope.OTHERS) == []


def test_who_lost_the_audience_holds_nothing_back(curator):
    """What shows no entry, escalations and gaps that are open, every expert may see."""
    ids = make_one_of_each(curator)
    vault = make_audience("vault", groups=["vault"])
    Entry.objects.update(audience=vault)
    group, moved = vault.groups.get(), make_user(Role.CURATOR)
    for user in (curator, moved):
        user.groups.add(group)
    kinds = [Kind.REVIEW, Kind.CONFLICT, Kind.ENTRY, Kind.PROPOSAL]
    for kind in kinds:
        assign(kind, ids[kind], to=moved, by=curator)
    owned = make_entry("It is free.", state="in_review", audience=vault, owner=moved)
    held = {(kind, ids[kind]) for kind in kinds} | {(Kind.ENTRY, owned.pk)}
    assert not held & {*listed(curator)}
    assert {*listed(curator, scope=Scope.OTHERS)} == held
    assert not review_queue(curator).exists()

    group.user_set.remove(moved)

    assert held <= {*listed(curator)}
    assert listed(curator, scope=Scope.OTHERS) == []
    assert review_queue(curator).get().pk == ids[Kind.REVIEW]
    moved.is_superuser = True
    moved.save()
    assert {*listed(curator, scope=Scope.OTHERS)} == held


def test_who_asked_judges_what_rests_on_what_is_theirs_no_more(curator):
    """One's own answers stay complete."""
    vault = make_audience("vault", groups=["vault"])
    curator.groups.add(vault.groups.get())
    cited = make_entry("The limit is 900.", audience=vault)
    asker = make_user(Role.SME)
    answer = make_answer(asker, question="What is the limit?", cited=(cited,))
    review = Review.objects.create(answer=answer, assignee=asker)

    assert listed(curator, scope=Scope.OTHERS) == [(Kind.REVIEW, review.pk)]


def test_nothing_is_assigned_to_who_may_not_see_it_or_not_do_it(curator):
    curator.groups.add(*make_audience("vault", groups=["vault"]).groups.all())
    entry = make_entry(
        "The limit is 900.", state="in_review", audience=make_audience("vault")
    )
    proposal = make_one_of_each(curator)[Kind.PROPOSAL]

    for kind, subject, to in (
        (Kind.ENTRY, entry.pk, make_user(Role.CURATOR)),
        (Kind.PROPOSAL, proposal, make_user(Role.SME)),
        (Kind.ESCALATION, make_escalation().pk, make_user()),
    ):
        with pytest.raises(InvalidInboxError, match="choose somebody else"):
            assign(kind, subject, to=to, by=curator)
    assert not InboxMark.objects.exists()


def test_what_one_may_not_see_is_not_there(curator):
    vault = make_audience("vault", groups=["vault"])
    hidden = make_entry("The limit is 900.", state="in_review", audience=vault)

    assert listed(curator) == []
    for act in (
        lambda: assign(Kind.ENTRY, hidden.pk, to=curator, by=curator),
        lambda: snooze(Kind.ENTRY, hidden.pk, until=None, by=curator),
    ):
        with pytest.raises(InboxItemNotFoundError, match="waits for you"):
            act()
    agent = make_user()
    with pytest.raises(InboxItemNotFoundError):
        assign(Kind.ESCALATION, make_escalation().pk, to=agent, by=agent)


def test_what_is_snoozed_is_left_out_for_one_person_until_its_day(curator):
    sent = make_escalation()
    other = make_user(Role.SME)
    until = timezone.now() + timedelta(days=2)

    snooze(Kind.ESCALATION, sent.pk, until=until, by=curator)

    assert listed(curator) == []
    assert count_waiting(curator)[Kind.ESCALATION] == 0
    assert listed(curator, Scope.SNOOZED) == [(Kind.ESCALATION, sent.pk)]
    assert listed(other) == [(Kind.ESCALATION, sent.pk)]
    assert listed(curator, at=until) == [(Kind.ESCALATION, sent.pk)]
    audit = AuditEntry.objects.filter(kind="inbox", action="insert").get()
    assert audit.subject == "curator"
    assert audit.changes["kind"] == [None, "escalation"]

    snooze(Kind.ESCALATION, sent.pk, until=None, by=curator)
    assert listed(curator) == [(Kind.ESCALATION, sent.pk)]
    for wrong in (timezone.now(), timezone.now() + timedelta(days=400)):
        with pytest.raises(InvalidInboxError, match="next 365"):
            snooze(Kind.ESCALATION, sent.pk, until=wrong, by=curator)


def test_a_page_and_its_counts_take_the_same_queries_however_long(
    curator, django_assert_num_queries
):
    make_one_of_each(curator)
    for _ in range(3):
        make_escalation()
    user = find_user(pk=curator.pk)  # as a request does, with its groups
    assert user is not None
    with django_assert_num_queries(2):  # tags, all kinds together
        count_waiting(user)
    # Tags, the counts, the list, one for each of seven kinds, knowledge bases, what is
    # snoozed.
    with django_assert_num_queries(12):
        page = read_inbox(user, size=50)
    assert sum(page.counts.values()) == len(page.items) == 10


def test_the_page_is_for_experts_who_may_open_the_admin(curator):
    make_one_of_each(curator)
    client = Client()
    for user, status in (
        (make_user(), 403),
        (make_user(Role.SME), 403),
        (curator, 200),
    ):
        client.force_login(user)
        assert client.get(reverse("inbox")).status_code == status
        assert client.get(reverse("inbox-count")).status_code == status

    assert ">7<" in client.get(reverse("inbox-count")).content.decode()
    page = client.get(reverse("inbox"), {"kind": "gap"})
    assert [item.kind for item in page.context["rows"]] == [Kind.GAP]
    live = client.get(
        reverse("inbox"), {"whose": "mine"}, headers={"HX-Request": "true"}
    )
    assert b"<html" not in live.content
    assert client.get(reverse("inbox"), {"kind": "x", "page": "0"}).status_code == 200


def test_the_page_shows_what_waits_in_one_knowledge_base_alone(curator):
    loans = make_knowledge_base("loans")
    here = make_entry("An account costs 3 euros.", state="in_review")
    there = make_entry("A loan costs 4.", state="in_review", knowledge_base=loans)
    client = page_client(curator)
    address = reverse("inbox")

    def shown(**chosen) -> set[int]:
        page = client.get(address, chosen)
        return {item.subject for item in page.context["rows"]}

    page = client.get(address, {"base": "loans", "whose": "mine"}).content.decode()

    assert shown() == shown(base="nowhere") == {here.pk, there.pk}
    assert shown(base="loans", kind="entry") == {there.pk}
    assert f"?whose=mine&amp;base={here.knowledge_base.slug}" in page
    assert 'href="/inbox?whose=mine&amp;kind=entry&amp;base=loans"' in page


def test_one_knowledge_base_is_no_choice(curator):
    make_entry("An account costs 3 euros.", state="in_review")

    assert page_client(curator).get(reverse("inbox")).context["bases"] == []


def test_the_page_assigns_snoozes_and_undoes(curator):
    sent = make_escalation()
    client = page_client(curator)
    live = {"HX-Request": "true"}
    subject = {"kind": "escalation", "subject": sent.pk}

    def act(**posted):
        address = reverse("inbox-change")
        return client.post(address, {**subject, **posted}, headers=live)

    assert "Assigned to you." in act(action="take").content.decode()
    sent.refresh_from_db()
    assert sent.assignee == curator
    make_user(Role.SME, username="ben")
    undo = act(action="assign", user="ben").context["done"].undo
    assert undo == {"action": "assign", "user": "curator", "expected": "ben"}
    act(**undo)
    sent.refresh_from_db()
    assert sent.assignee == curator
    day = timezone.localdate() + timedelta(days=3)
    assert act(action="snooze", until=day.isoformat()).context["rows"] == ()
    assert len(act(action="wake").context["rows"]) == 1
    assert act(action="assign", user="nobody").status_code == 422
    assert act(action="snooze", until="soon").status_code == 422
    assert act(action="dance").status_code == 422
    assert act(action="take", subject="x").status_code == 400
    plain = client.post(reverse("inbox-change"), {**subject, "action": "release"})
    assert plain["Location"] == "/inbox?"


def test_rest_flags_an_entry_as_the_page_does(curator, client):
    entry = make_entry("It costs 12 euros.")
    secret = make_entry("4711", audience=make_audience("vault", groups=["vault"]))
    client.force_login(make_user())

    def flag(entry_id: int, **body):
        address = f"/api/v1/entries/{entry_id}/flag"
        return client.post(address, body, content_type="application/json")

    said = {"reasons": ["outdated"], "note": "13 now"}
    assert flag(entry.pk, **said).json() == said
    assert flag(entry.pk).json() == said
    assert Flag.objects.get().entry == entry
    assert flag(secret.pk).status_code == 404
    assert flag(entry.pk, note="x" * 1001).status_code == 400
    assert flag(entry.pk, why="x").status_code == 400
    assert flag(entry.pk, reasons=["off_topic"]).status_code == 400


def test_rest_lists_the_same(curator, client):
    made = make_one_of_each(curator)
    client.force_login(curator)

    shown = client.get("/api/v1/inbox?page_size=3").json()

    assert shown["counts"] == dict.fromkeys(Kind.values, 1)
    assert [each["kind"] for each in shown["results"]] == [
        "import", "escalation", "review",
    ]  # fmt: skip
    assert shown["next"] == 2
    (gap,) = client.get("/api/v1/inbox?kind=gap").json()["results"]
    assert gap["id"] == made[Kind.GAP]
    assert gap["address"] == f"/admin/qa/gap/{made[Kind.GAP]}/change/"
    loans = make_knowledge_base("loans")
    there = make_entry("A loan costs 4.", state="in_review", knowledge_base=loans)
    narrowed = client.get("/api/v1/inbox?knowledge_base=loans").json()
    assert [each["id"] for each in narrowed["results"]] == [there.pk]
    assert sum(narrowed["counts"].values()) == 1
    assert client.get("/api/v1/inbox?kind=nothing").status_code == 400
    assert client.get("/api/v1/inbox?knowledge_base=nope").status_code == 400
    client.force_login(make_user())
    assert client.get("/api/v1/inbox").status_code == 403


@pytest.mark.parametrize(
    ("state", "bad_rows", "waits"),
    [
        ("planned", [], True),
        ("failed", [], True),
        ("applied", [], False),
        ("applied", [{"place": "line 2", "reason": "It is empty."}], True),
    ],
)
def test_an_import_waits_until_it_is_applied_as_a_whole(
    curator, state, bad_rows, waits
):
    made = make_one_of_each(curator)
    rows = Import.objects.filter(pk=made[Kind.IMPORT])
    rows.update(state=state, bad_rows=bad_rows)
    reader = reader_of(curator, timezone.now())

    assert waiting(Kind.IMPORT, reader, Scope.WAITING).exists() is waits
