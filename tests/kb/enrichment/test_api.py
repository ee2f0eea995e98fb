"""Proposals over REST: for curators, of their audiences."""

import pytest

from accounts.roles import Role
from jobs.models import Job
from kb.models import Entry, Proposal
from tests.factories import (
    make_audience,
    make_curator,
    make_entry,
    make_knowledge_base,
    make_user,
)
from tests.kb.enrichment.test_proposals import KENYA, PERU, proposal, propose

pytestmark = pytest.mark.django_db

PROPOSALS = "/api/v1/proposals"


@pytest.fixture
def curator(api):
    return api(make_curator())


def hide(made: Proposal) -> None:
    Entry.objects.filter(pk=made.entry_id).update(
        audience=make_audience("board", groups=["board"])
    )


def test_a_proposal_is_shown_with_all_that_tells_whether_to_trust_it(curator):
    near = make_entry("The capital of Peru was Cuzco.")
    made = proposal()

    shown = curator.get(f"{PROPOSALS}/{made.pk}").json()

    assert shown["sentence"] == "The capital of Peru is Lima."
    assert shown["state"] == "proposed"
    assert shown["entry"] == made.entry_id
    assert [piece["entry"] for piece in shown["nearest"]] == [near.pk]
    for name in ("stated", "agreement", "likelihood", "confidence"):
        assert 0 < shown[name] < 1 or name == "agreement"
    assert shown["model_name"] == "scripted"


def test_the_list_takes_the_same_queries_however_long(
    curator, django_assert_num_queries
):
    make_entry("The capital of Peru was Cuzco.")
    propose()

    with django_assert_num_queries(4):
        shown = curator.get(PROPOSALS, {"state": "proposed"}).json()

    assert len(shown["results"]) == 4
    assert curator.get(PROPOSALS, {"state": "rejected"}).json()["results"] == []


@pytest.mark.parametrize("role", [Role.AGENT, Role.SME])
def test_proposals_are_the_curators(api, role):
    made = proposal()
    asker = api(make_user(role))

    assert asker.get(PROPOSALS).status_code == 403
    assert asker.get(f"{PROPOSALS}/{made.pk}").status_code == 403
    assert asker.post(PROPOSALS, {}, format="json").status_code == 403
    decision = {"ids": [made.pk], "decision": "verify"}
    response = asker.post(f"{PROPOSALS}/decide", decision, format="json")
    assert response.status_code == 403


def test_a_proposal_of_another_audience_does_not_exist(curator):
    made = proposal()
    hide(made)

    assert curator.get(PROPOSALS).json()["results"] == []
    assert curator.get(f"{PROPOSALS}/{made.pk}").status_code == 404
    decision = {"ids": [made.pk], "decision": "approve"}
    response = curator.post(f"{PROPOSALS}/decide", decision, format="json")
    assert response.status_code == 404
    made.refresh_from_db()
    assert made.state == "proposed"


def test_a_near_entry_of_another_audience_is_not_told(curator):
    near = make_entry("The capital of Peru was Cuzco.")
    made = proposal()
    near.audience = make_audience("board", groups=["board"])
    near.save()

    assert made.nearest
    assert curator.get(f"{PROPOSALS}/{made.pk}").json()["nearest"] == []


def test_what_others_alone_know_already_is_neither_near_nor_known(curator):
    board = make_audience("board", groups=["board"])
    make_entry("The capital of Peru was Cuzco.", audience=board)

    assert proposal().nearest == []


def test_several_are_decided_on_at_once_or_none(curator):
    propose(PERU, KENYA)
    ids = list(Proposal.objects.values_list("pk", flat=True))

    done = curator.post(
        f"{PROPOSALS}/decide", {"ids": ids, "decision": "approve"}, format="json"
    )
    again = curator.post(
        f"{PROPOSALS}/decide",
        {"ids": ids, "decision": "reject", "reason": "No."},
        format="json",
    )

    assert done.json() == {"decided": sorted(ids)}
    assert again.status_code == 409
    assert set(Entry.objects.values_list("state", flat=True)) == {"in_review"}


def test_one_is_reworded_as_it_is_verified(curator):
    made = proposal()
    change = {"ids": [made.pk], "decision": "verify", "text": "Lima governs Peru."}

    response = curator.post(f"{PROPOSALS}/decide", change, format="json")

    assert response.status_code == 200
    entry = Entry.objects.get(pk=made.entry_id)
    assert (entry.text, entry.state) == ("Lima governs Peru.", "verified")


def test_two_are_not_reworded_alike(curator):
    change = {"ids": [1, 2], "decision": "approve", "text": "Lima."}

    response = curator.post(f"{PROPOSALS}/decide", change, format="json")

    assert response.status_code == 400


def test_a_job_is_started_from_seeds(curator):
    make_knowledge_base()
    make_audience()
    wanted = {
        "knowledge_base": "cards", "audience": "everyone", "seeds": [PERU], "count": 5,
    }  # fmt: skip

    response = curator.post(PROPOSALS, wanted, format="json")

    assert response.status_code == 202, response.content
    job = Job.objects.get()
    assert job.kind == "kb.enrich"
    assert job.parameters["seeds"] == [PERU]
    assert job.parameters["count"] == 5


@pytest.mark.parametrize(
    "changes",
    [{"seeds": []}, {"count": 0}, {"per_seed": 99}, {"audience": "board"}, {"more": 1}],
)
def test_what_is_out_of_bounds_is_refused(curator, changes):
    make_knowledge_base()
    make_audience()
    make_audience("board", groups=["board"])
    wanted = {
        "knowledge_base": "cards", "audience": "everyone", "seeds": [PERU], **changes,
    }  # fmt: skip

    assert curator.post(PROPOSALS, wanted, format="json").status_code == 400
    assert not Job.objects.exists()
