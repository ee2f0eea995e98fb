"""What a model proposed answers only where the policy says so, and the answer says it."""

import pytest

from accounts.roles import Role
from kb.entries.services import create_entry
from kb.models import Entry
from qa.answers.asking import ask
from qa.answers.serializers import as_json
from qa.models import AnswerEvidence
from qa.policies.services import activate, active_policy, new_version
from tests.factories import make_audience, make_knowledge_base, make_user

pytestmark = pytest.mark.django_db

QUESTION = "What does a replacement card cost?"


@pytest.fixture
def proposed():
    return create_entry(
        knowledge_base=make_knowledge_base(),
        audience=make_audience(),
        text="A replacement card costs 12 euros.",
        author=None,
        origin=Entry.Origin.ENRICHED,
        state=Entry.State.PROPOSED,
        confidence=0.9,
    )


def decide(**changes):
    activate(new_version(active_policy(make_knowledge_base()), by=None, **changes))


def asked(**changes):
    decide(soft_refusal=False, support_check=False, **changes)
    return ask(QUESTION, asker=make_user(Role.AGENT), channel="api")


def test_by_default_it_is_as_if_it_did_not_exist(proposed):
    answer = asked()

    assert (answer.outcome, answer.reason) == ("refused", "nothing_known")


def test_below_the_floor_it_does_not_answer(proposed):
    answer = asked(answer_from_enriched=True, enriched_floor=0.95)

    assert answer.outcome == "refused"
    assert not AnswerEvidence.objects.filter(entry=proposed, role="cited").exists()


def test_the_floor_of_what_people_wrote_does_not_let_it_in(proposed):
    assert asked(unverified_floor=0.1).outcome == "refused"


@pytest.mark.slow
def test_where_the_policy_lets_it_in_the_answer_says_so(proposed):
    answer = asked(answer_from_enriched=True, enriched_floor=0.5)

    assert answer.outcome == "answered", (answer.reason, answer.signals)
    signals = {signal["name"]: signal["value"] for signal in answer.signals}
    measured = AnswerEvidence.objects.get(answer=answer, entry=proposed)
    assert measured.confidence == 0.9
    assert signals["distance_over_confidence"] == pytest.approx(measured.distance / 0.9)
    shown = as_json_of(answer)
    assert shown["evidence"][0]["machine_written"] is True
    assert shown["evidence"][0]["verified"] is False


def as_json_of(answer):
    from qa.answers.models import fetch_evidence

    fetch_evidence(answer, answer.asker)
    return as_json(answer)


@pytest.mark.slow
def test_the_page_says_that_nobody_reviewed_it(proposed, client):
    decide(
        soft_refusal=False, support_check=False, answer_from_enriched=True,
        enriched_floor=0.5,
    )  # fmt: skip
    user = make_user(Role.AGENT)
    client.force_login(user)
    answer = ask(QUESTION, asker=user, channel="page")

    page = client.get(f"/answers/{answer.pk}").content.decode()

    assert "This is based on text that a language model wrote" in page
    assert "Written by a language model, not reviewed" in page
