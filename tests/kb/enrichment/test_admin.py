"""Proposals in the admin: decided one or many at a time, asked for from seeds."""

import pytest
from django.urls import reverse

from accounts.roles import Role
from jobs.models import Job
from kb.models import Entry, Proposal, Section
from tests.factories import (
    make_audience,
    make_document,
    make_knowledge_base,
    make_staff,
)
from tests.kb.enrichment.test_proposals import KENYA, PERU, proposal, propose

pytestmark = pytest.mark.django_db

LIST = "/admin/kb/proposal/"
FORM = "/admin/kb/proposal/propose/"


def act(client, action, ids):
    return client.post(
        LIST, {"action": action, "_selected_action": ids, "index": 0}, follow=True
    )


def decision(**changes):
    return {"text": "The capital of Peru is Lima.", "decision": "approve", **changes}


def test_the_list_shows_what_was_proposed_and_how_sure_it_is(curator):
    proposal()

    page = curator.get(LIST).content.decode()

    for part in ("The capital of Peru is Lima.", PERU, "says 0.90", "scripted"):
        assert part in page


@pytest.mark.parametrize(
    ("action", "state", "entry_state"),
    [
        ("approve", "approved", "in_review"),
        ("verify", "approved", "verified"),
        ("reject", "rejected", "retired"),
    ],
)
def test_many_are_decided_at_once(curator, action, state, entry_state):
    propose(PERU, KENYA)
    ids = list(Proposal.objects.values_list("pk", flat=True))

    page = act(curator, action, ids).content.decode()

    assert "2 proposals" in page
    assert set(Proposal.objects.values_list("state", flat=True)) == {state}
    assert set(Entry.objects.values_list("state", flat=True)) == {entry_state}
    assert set(Proposal.objects.values_list("decided_by", flat=True)) == {
        curator.user.pk
    }


def test_one_is_reworded_and_verified_with_a_reason(curator):
    made = proposal()
    address = reverse("admin:kb_proposal_change", args=[made.pk])

    shown = curator.get(address).content.decode()
    curator.post(
        address, decision(text="Lima governs Peru.", decision="verify", why="Clearer.")
    )

    assert made.answer in shown
    made.refresh_from_db()
    assert (made.state, made.reason) == ("edited", "Clearer.")
    entry = Entry.objects.get(pk=made.entry_id)
    assert (entry.text, entry.verified_by) == ("Lima governs Peru.", curator.user)


def test_what_is_decided_can_be_looked_at_and_not_decided_again(curator):
    made = proposal()
    act(curator, "reject", [made.pk])
    address = reverse("admin:kb_proposal_change", args=[made.pk])

    assert curator.get(address).status_code == 200
    assert curator.post(address, decision()).status_code == 403
    assert "already" in act(curator, "approve", [made.pk]).content.decode()


def test_a_proposal_of_another_audience_is_not_there(curator):
    made = proposal()
    board = make_audience("board", groups=["board"])
    Entry.objects.filter(pk=made.entry_id).update(audience=board)

    assert made.sentence not in curator.get(LIST).content.decode()
    act(curator, "verify", [made.pk])
    made.refresh_from_db()
    assert made.state == "proposed"


def test_seeds_are_typed_in_and_become_a_job(curator):
    form = {
        "knowledge_base": make_knowledge_base().pk,
        "audience": make_audience().pk,
        "seeds": f"{PERU}\n\n{KENYA}\n{PERU}",
        "per_seed": 2,
        "count": 10,
    }

    page = curator.post(FORM, form, follow=True).content.decode()

    assert "The model is writing" in page
    job = Job.objects.get()
    assert job.owner == curator.user
    assert job.parameters["seeds"] == [PERU, KENYA]


@pytest.mark.parametrize("changes", [{"seeds": " "}, {"count": 0}, {"per_seed": 99}])
def test_a_form_that_asks_for_too_little_or_too_much_starts_nothing(curator, changes):
    form = {
        "knowledge_base": make_knowledge_base().pk,
        "audience": make_audience().pk,
        "seeds": PERU,
        "per_seed": 2,
        "count": 10,
    }

    assert curator.post(FORM, {**form, **changes}).status_code == 200
    assert not Job.objects.exists()


def test_a_documents_headings_become_seeds(curator):
    document = make_document("Price list")
    Section.objects.create(document=document, heading="Fees abroad", position=0)

    page = curator.post(
        "/admin/kb/document/",
        {"action": "propose", "_selected_action": [document.pk], "index": 0},
        follow=True,
    )

    assert page.redirect_chain[-1][0] == FORM
    assert "Price list: Fees abroad" in page.content.decode()


def test_who_may_not_write_knowledge_sees_no_proposals(client):
    user = make_staff(Role.SME)
    client.force_login(user)

    assert client.get(LIST).status_code == 403
    assert client.get(FORM).status_code == 403
