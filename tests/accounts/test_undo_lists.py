"""Undo in the message about what was done to many rows, retired or deleted."""

import pytest
from django.urls import reverse

from accounts.models import AuditEntry
from accounts.roles import Role
from kb.conflicts.finding import find_entry_conflicts
from kb.entries.comments import add_comment
from kb.entries.services import edit_entry
from kb.entries.states import mark_for_review
from kb.models import Comment, Conflict, Entry, Proposal
from qa.gaps.escalations import escalate
from qa.gaps.services import assign, dismiss
from qa.models import Escalation, Gap, Review
from tests.accounts.test_undo import do, make_gap, offered, said, take_back
from tests.factories import (
    make_curator,
    make_entries,
    make_entry,
    make_staff,
    make_user,
)
from tests.kb.enrichment.test_proposals import KENYA, PERU, propose
from tests.qa.answer_rows import make_answer
from tests.qa.reviews.review_rows import make_review

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada():
    return make_staff(Role.CURATOR, username="ada")


def act(client, model, action, *rows, **fields):
    """Do what is confirmed to rows of a list."""
    chosen = {"action": action, "_selected_action": [row.pk for row in rows]}
    address = reverse(f"admin:{model}_changelist") + "?o=1"
    return client.post(address, {**chosen, "confirm": "1", **fields}, follow=True)


def test_what_was_verified_in_bulk_is_taken_back_and_what_changed_since_is_named(
    page, ada
):
    made = make_entries([f"Fact {n}." for n in range(3)], verify=False)

    done = act(page, "kb_entry", "verify", *made)
    assert said(done) == ["3 entries verified. "]
    mark_for_review(entry_id=made[1].pk, by=ada, reason="A customer complains.")
    undone = take_back(page, offered(done))

    states = dict(Entry.objects.values_list("pk", "state"))
    assert [states[entry.pk] for entry in made] == ["draft", "needs_review", "draft"]
    first, stays = said(undone)
    assert first == "Undone: 3 entries verified."
    assert stays.startswith(f"Entry {made[1].pk} was changed since by ada on ")
    assert undone.request["PATH_INFO"] == reverse("admin:kb_entry_changelist")
    assert undone.request["QUERY_STRING"] == "o=1"


def test_of_many_that_changed_since_a_few_are_named(page, ada):
    made = make_entries([f"Fact {n}." for n in range(9)], verify=False)
    token = offered(act(page, "kb_entry", "verify", *made))
    for entry in made[1:]:
        edit_entry(entry_id=entry.pk, author=ada, may_verify=True, owner=ada)

    undone = take_back(page, token)

    assert said(undone)[1].count("was changed since by ada") == 5
    assert said(undone)[1].endswith("it stays as it is. And 3 more.")


@pytest.mark.parametrize("place", ["due", "page", "list"])
def test_what_was_retired_is_as_it_was_and_so_is_its_conflict(page, place):
    make_entry("The Savings account costs 5 euros a month.")
    entry = make_entry("The Savings account costs 7 euros a month.")
    entry = mark_for_review(entry_id=entry.pk, by=make_curator())
    find_entry_conflicts(entry.pk)
    before = Conflict.objects.values().get()

    if place == "due":
        done = do(page, entry, "retire")
    elif place == "list":
        done = act(page, "kb_entry", "retire", entry)
    else:
        address = reverse("entry-retire", args=[entry.pk])
        done = page.post(address, {"revision": 2}, follow=True)
    assert Conflict.objects.get().state == Conflict.State.OUTDATED
    assert ("autofocus>Undo" in done.content.decode()) == (place != "list")
    take_back(page, offered(done))

    assert Entry.objects.get(pk=entry.pk).state == Entry.State.NEEDS_REVIEW
    assert Conflict.objects.values().get() == before


def test_what_was_restored_on_its_page_is_retired_again(page):
    entry = make_entry(state="retired")
    address = reverse("entry-restore", args=[entry.pk])

    done = page.post(address, {"revision": 2}, follow=True)
    undone = take_back(page, offered(done))

    assert Entry.objects.get().state == Entry.State.RETIRED
    assert said(undone) == ["Undone: Restored."]


def test_a_deleted_comment_is_there_again(page, carla):
    entry = make_entry()
    comment = add_comment(entry_id=entry.pk, by=carla, text="Since May?")

    done = page.post(reverse("comment-delete", args=[comment.pk]), follow=True)
    assert not Comment.objects.exists()
    undone = take_back(page, offered(done))

    assert Comment.objects.get() == comment
    assert (
        undone.redirect_chain[-1][0] == f"{reverse('entry', args=[entry.pk])}#comments"
    )


@pytest.mark.slow
def test_the_audit_names_what_was_undone_and_by_whom(page, carla, ada):
    comment = add_comment(entry_id=make_entry().pk, by=carla, text="Since May?")
    entries = make_entries(["One.", "Two."], verify=False)
    gaps = [make_gap(), make_gap()]

    deleted = page.post(reverse("comment-delete", args=[comment.pk]), follow=True)
    take_back(page, offered(deleted))
    verified = act(page, "kb_entry", "verify", *entries)
    mark_for_review(entry_id=entries[0].pk, by=ada, reason="A customer complains.")
    take_back(page, offered(verified))
    take_back(page, offered(verified))  # it is refused, and no entry more
    merged = act(page, "qa_gap", "merge_chosen", *gaps)
    take_back(page, offered(merged))

    noted = AuditEntry.objects.filter(kind="undo").order_by("pk")
    assert {each.actor for each in noted} == {"carla"}
    assert [(each.subject, each.changes) for each in noted] == [
        (f"deleting comment {comment.pk} on entry {comment.entry_id}", {}),
        (
            ", ".join(f"entry {entry.pk}" for entry in entries),
            {"stay as they are": [None, 1]},
        ),
        (f"merging gap {gaps[0].pk} and {gaps[1].pk}", {}),
    ]
    assert Gap.objects.count() == 2


@pytest.mark.parametrize("action", ["approve", "verify", "reject"])
def test_what_was_decided_on_many_proposals_is_taken_back(page, action):
    propose(PERU, KENYA)
    proposals, entries = Proposal.objects.order_by("pk"), Entry.objects.order_by("pk")
    before = list(proposals.values()), list(entries.values("state", "confidence"))

    done = act(page, "kb_proposal", action, *proposals)
    assert not proposals.filter(state="proposed").exists()
    undone = take_back(page, offered(done))

    after = list(proposals.values()), list(entries.values("state", "confidence"))
    assert after == before
    assert said(undone)[0].startswith("Undone: 2 proposals")


def test_gaps_that_were_opened_again_are_as_they_were(page, carla, ada):
    gaps = [make_gap(), make_gap()]
    for gap in gaps:
        dismiss(gap.pk, by=ada, reason="Not ours.")
    before = Gap.objects.values().get(pk=gaps[0].pk)

    done = act(page, "qa_gap", "reopen", *gaps)
    assert set(Gap.objects.values_list("state", flat=True)) == {"open"}
    assign(gaps[1].pk, by=ada, owner=carla)
    undone = take_back(page, offered(done))

    assert Gap.objects.values().get(pk=gaps[0].pk) == before
    assert Gap.objects.get(pk=gaps[1].pk).state == Gap.State.OPEN
    assert "it is open, assigned to carla; it stays as it is" in said(undone)[1]


def test_a_gap_that_was_opened_again_on_its_page_is_as_it_was(page, ada):
    gap = dismiss(make_gap().pk, by=ada, reason="Not ours.")
    before = Gap.objects.values().get()
    address = reverse("admin:qa_gap_reopen_this", args=[gap.pk])

    done = page.post(address, follow=True)
    assert Gap.objects.get().state == Gap.State.OPEN
    take_back(page, offered(done))

    assert Gap.objects.values().get() == before


def test_who_worked_on_gaps_works_on_them_again(page, carla, ada):
    gaps = [make_gap(), make_gap(), make_gap()]
    assign(gaps[0].pk, by=ada, owner=ada)

    done = act(page, "qa_gap", "assign_to_me", *gaps)
    assign(gaps[2].pk, by=ada, owner=ada)
    undone = take_back(page, offered(done))

    owners = dict(Gap.objects.values_list("pk", "owner"))
    assert [owners[gap.pk] for gap in gaps] == [ada.pk, None, ada.pk]
    assert said(undone) == [
        "Undone: 3 assigned to you.",
        f"Gap {gaps[2].pk} was assigned to ada since; it stays as it is.",
    ]


@pytest.mark.parametrize("model", [Escalation, Review])
def test_who_worked_on_an_escalation_or_a_review_works_on_it_again(page, carla, model):
    asker = make_user()
    if model is Escalation:
        escalate(make_answer(asker).pk, user=asker)
    else:
        make_review()
    model.objects.update(assignee=carla)

    done = act(
        page,
        model._meta.label_lower.replace(".", "_"),
        "unassign",
        *model.objects.all(),
    )
    assert model.objects.get().assignee is None
    take_back(page, offered(done))

    assert model.objects.get().assignee == carla


def test_a_gap_that_is_gone_is_said_to_be(page):
    gaps = [make_gap(), make_gap()]
    token = offered(act(page, "qa_gap", "assign_to_me", *gaps))
    Gap.objects.filter(pk=gaps[0].pk).delete()

    undone = take_back(page, token)

    assert said(undone)[1] == f"Gap {gaps[0].pk} is gone, or you may not see it."
