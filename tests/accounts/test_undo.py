"""Undo, offered in the message that says what was done."""

import re

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import undo
from accounts.roles import Role
from kb.conflicts.finding import find_entry_conflicts
from kb.entries.states import mark_for_review
from kb.models import Conflict, Entry
from qa.gaps.services import assign
from qa.inbox.models import Kind
from qa.inbox.services import assign as assign_item
from qa.models import Gap
from tests.clients import page_client
from tests.factories import (
    make_curator,
    make_entry,
    make_knowledge_base,
    make_staff,
    make_user,
)

pytestmark = pytest.mark.django_db

DUE = "/admin/kb/entry/due"


@pytest.fixture
def due():
    entry = make_entry()
    return mark_for_review(entry_id=entry.pk, by=make_curator())


def offered(response):
    """Return what the button of the message sends."""
    found = re.search(r'name="undo" value="([^"]+)"', response.content.decode())
    assert found, "nothing is offered"
    return found[1]


def said(response):
    return [re.sub("<.*", "", str(each)) for each in response.context["messages"]]


def take_back(client, token):
    return client.post(reverse("undo"), {"undo": token}, follow=True)


def do(client, entry, action, **fields):
    posted = {"entry": entry.pk, "action": action, "revision": 2, **fields}
    return client.post(f"{DUE}?whose=all", posted, follow=True)


@pytest.mark.parametrize(
    ("action", "fields", "done"),
    [
        ("verify", {}, "Still true"),
        ("postpone", {"days": "30"}, "Postponed by 30 days"),
        ("hand_over", {"owner": "carla"}, "Handed over to carla"),
        ("set_validity", {"valid_until": "2099-12-31"}, "Valid until 2099-12-31"),
    ],
)
def test_what_is_done_under_due_is_taken_back_there(page, due, action, fields, done):
    before = Entry.objects.values().get(pk=due.pk)

    after = do(page, due, action, **fields)
    undone = take_back(page, offered(after))

    now = Entry.objects.values().get(pk=due.pk)
    assert now | {"updated_at": 0} == before | {"updated_at": 0}
    assert said(undone)[0].startswith(f"Undone: {done}")
    assert undone.request["PATH_INFO"] == DUE
    assert undone.request["QUERY_STRING"] == "whose=all"
    assert "Nothing is due here." not in undone.content.decode()


def test_still_true_is_taken_back_on_the_entrys_page(page, due):
    address = reverse("entry-still-true", args=[due.pk])

    after = page.post(address, {"revision": 2}, follow=True)
    undone = take_back(page, offered(after))

    assert Entry.objects.get(pk=due.pk).state == Entry.State.NEEDS_REVIEW
    assert said(undone) == ["Undone: Verified."]


def test_what_was_edited_on_its_page_is_taken_back(page, due):
    typed = {"text": "It costs 13 euros.", "revision": 2}

    after = page.post(reverse("entry-edit", args=[due.pk]), typed, follow=True)
    take_back(page, offered(after))

    assert Entry.objects.get(pk=due.pk).text == due.text


def test_a_decision_of_a_conflict_is_taken_back(page):
    make_entry("The Savings account costs 5 euros a month.")
    other = make_entry("The Savings account costs 7 euros a month.")
    (conflict,) = find_entry_conflicts(other.pk)
    address = reverse("admin:kb_conflict_change", args=[conflict.pk])

    body = {"resolution": f"retire_other {conflict.first_id}", "reason": "New list."}
    after = page.post(address, body, follow=True)
    assert Entry.objects.get(pk=other.pk).state == Entry.State.RETIRED
    undone = take_back(page, offered(after))

    assert Entry.objects.get(pk=other.pk).state == Entry.State.VERIFIED
    assert Conflict.objects.get().state == Conflict.State.OPEN
    assert undone.request["PATH_INFO"] == address


def make_gap():
    return Gap.objects.create(
        knowledge_base=make_knowledge_base(),
        question="What does a wire transfer cost?",
        vector=[1.0] * 384,
        first_seen=timezone.now(),
        last_seen=timezone.now(),
    )


def dismiss(client, gap):
    address = reverse("admin:qa_gap_change", args=[gap.pk])
    typed = {"how": "dismiss", "said": "Not ours.", "asked": "", "words": ""}
    return client.post(address, typed, follow=True)


def test_a_dismissed_gap_is_open_again_and_nobodys(page):
    gap = make_gap()
    before = Gap.objects.values().get(pk=gap.pk)

    after = dismiss(page, gap)
    assert Gap.objects.get(pk=gap.pk).state == Gap.State.DISMISSED
    undone = take_back(page, offered(after))

    assert Gap.objects.values().get(pk=gap.pk) == before
    assert said(undone) == [f"Undone: Dismissed: {gap}"]


def test_a_gap_that_was_given_to_somebody_since_stays_dismissed(page, carla):
    gap = make_gap()
    token = offered(dismiss(page, gap))
    ada = make_staff(Role.SME, username="ada")
    assign(gap.pk, by=carla, owner=ada)

    undone = take_back(page, token)

    assert "it is dismissed, assigned to ada; it stays as it is" in said(undone)[0]
    assert Gap.objects.get(pk=gap.pk).state == Gap.State.DISMISSED


@pytest.mark.slow
def test_an_assignment_is_taken_back_unless_it_was_assigned_again(page, carla, due):
    ada, ben = (make_staff(Role.CURATOR, username=name) for name in ("ada", "ben"))
    address, live = reverse("inbox-change"), {"HX-Request": "true"}
    item = {"kind": "entry", "subject": due.pk}
    handed = item | {"action": "assign", "user": "ada"}
    undo_of = item | {"action": "release", "expected": "ada"}

    first = page.post(address, handed, headers=live).content.decode()
    assert 'name="expected" value="ada"' in first
    assert page.post(address, undo_of, headers=live).status_code == 200
    page.post(address, handed, headers=live)
    assign_item(Kind.ENTRY, due.pk, to=ben, by=ada)
    refused = page.post(address, undo_of, headers=live)

    assert refused.status_code == 422
    assert "It has since been assigned to ben" in refused.content.decode()
    assert assign_item(Kind.ENTRY, due.pk, to=None, by=ben) == ben


def test_what_happened_since_is_said_and_stays(page, due):
    token = offered(do(page, due, "verify"))
    ada = make_staff(Role.CURATOR, username="ada")
    mark_for_review(entry_id=due.pk, by=ada, reason="A customer complains.")

    undone = take_back(page, token)

    assert "was changed since by ada on" in said(undone)[0]
    assert "A customer complains." in said(undone)[0]
    assert Entry.objects.get(pk=due.pk).revisions.count() == 4


def test_an_hour_later_nothing_is_taken_back(page, due, monkeypatch):
    monkeypatch.setattr(undo, "OFFERED_SECONDS", -1)

    undone = take_back(page, offered(do(page, due, "verify")))

    assert "more than an hour ago" in said(undone)[0]
    assert Entry.objects.get(pk=due.pk).state == Entry.State.VERIFIED


def test_only_who_was_offered_it_takes_it_back(page, due):
    token = offered(do(page, due, "verify"))
    other = page_client(make_staff(Role.CURATOR, username="ada"))

    for client, sent in ((other, token), (page, token[:-1] + "!"), (page, "x")):
        refused = client.post(reverse("undo"), {"undo": sent})
        assert refused.status_code == 400
        assert "was not offered to you" in refused.content.decode()
    assert Client().post(reverse("undo"), {"undo": token}).status_code == 302
    assert page.get(reverse("undo")).status_code == 405
    assert Entry.objects.get(pk=due.pk).state == Entry.State.VERIFIED


def test_who_lost_the_role_takes_nothing_back(page, carla, due):
    token = offered(do(page, due, "verify"))
    carla.groups.clear()
    make_user(username="somebody")

    undone = page.post(reverse("undo"), {"undo": token})

    assert undone.status_code == 302
    assert Entry.objects.get(pk=due.pk).state == Entry.State.VERIFIED
