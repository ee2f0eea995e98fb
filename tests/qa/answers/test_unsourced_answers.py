"""What the bundled model knows by itself, as askers get it."""

import pytest
from django.urls import reverse

from qa.answers.asking import ask
from qa.answers.waterfall import waterfall
from qa.calibration.versions import current_fingerprints
from qa.evaluation.cases import Case
from qa.evaluation.judging import by_label
from qa.evaluation.question_suite import AskedSuite
from qa.exceptions import PolicyError
from qa.inference.policy_models import own_knowledge_fingerprint
from qa.models import Answer, Policy
from qa.pipeline.policy import RetrievalTiming, Scope
from qa.policies.services import activate, ensure_default_policy, new_version
from tests.clients import page_client, rest_client
from tests.factories import make_entry, make_knowledge_base, make_user, put_in_force

pytestmark = pytest.mark.django_db

CAPITAL = "What is the capital of France?"


def adaptive(min_known: float) -> Policy:
    first = ensure_default_policy(make_knowledge_base())
    made = new_version(
        first,
        by=None,
        scope=Scope.ADAPTIVE,
        retrieval_timing=RetrievalTiming.LOG_PROBABILITY,
        min_known=min_known,
    )
    return put_in_force(made)


def test_what_it_knows_is_answered_and_labelled_on_every_way(client, bundled_base):
    adaptive(0.0)
    agent = make_user()
    client.force_login(agent)
    rest = rest_client(agent)

    answer = ask(CAPITAL, asker=agent, channel="api")

    assert "Paris" in answer.text
    assert (answer.gate, answer.is_unsourced) == ("boundary", True)
    assert len(answer.boundary["fingerprint"]) == 64
    read = rest.get(f"/api/v1/answers/{answer.pk}").json()
    assert (read["answered"], read["unsourced"], read["citations"]) == (True, True, [])
    assert read["effective"]["retrieval_timing"] == "log_probability"
    page = client.get(reverse("answer", args=[answer.pk])).content.decode()
    assert "This answer has no source." in page
    assert "Own knowledge" in page


def test_below_the_least_known_probability_the_knowledge_base_decides(bundled_base):
    adaptive(1.01)
    make_entry("A replacement card costs 12 euros.")

    answer = ask(CAPITAL, asker=make_user(), channel="api")

    assert answer.outcome == Answer.Outcome.REFUSED
    assert answer.gate == "hard_refusal"
    assert not answer.is_unsourced
    assert "own_sureness" in {signal["name"] for signal in answer.signals}


@pytest.mark.slow
def test_a_verified_entry_comes_before_what_the_model_knows(bundled_base):
    """What it knows is asked first by an explicit switch alone."""
    policy = adaptive(0.0)
    agent = make_user()

    uncovered = ask(CAPITAL, asker=agent, channel="api")
    make_entry("The capital of France is called Lutetia here.", question=CAPITAL)
    covered = ask(CAPITAL, asker=agent, channel="api")
    put_in_force(new_version(policy, by=None, own_knowledge_first=True))
    first = ask(CAPITAL, asker=agent, channel="api")

    assert (covered.gate, covered.boundary) == ("verbatim", {})
    assert "Lutetia" in covered.text
    assert uncovered.is_unsourced
    assert first.is_unsourced
    for answer, order in (
        (uncovered, ["Search", "Word for word", "Hard refusal", "Own knowledge"]),
        (first, ["Own knowledge", "Search"]),
    ):
        steps = [step for step in waterfall(answer) if step.name in order]
        assert [step.name for step in steps] == order
        (own,) = [step for step in steps if step.name == "Own knowledge"]
        assert own.verdict == "Answered here"
    for answer, said in (
        (uncovered, "nothing in the knowledge base clearly answers the question"),
        (first, "the knowledge base was not searched"),
    ):
        page = page_client(agent).get(reverse("answer", args=[answer.pk]))
        assert said in page.content.decode()
    (hard,) = [s for s in waterfall(uncovered) if s.name == "Hard refusal"]
    assert (hard.state, hard.verdict) == ("none", "Nothing covers it, continued")


def test_what_the_model_knows_decides_nothing_until_it_was_calibrated(bundled_base):
    first = ensure_default_policy(make_knowledge_base())
    changes = {
        "scope": Scope.ADAPTIVE,
        "retrieval_timing": RetrievalTiming.LOG_PROBABILITY,
    }
    runs = own_knowledge_fingerprint(RetrievalTiming.LOG_PROBABILITY)

    for set_for, said in (("", f"were never calibrated; {runs} is"), ("x" * 64, runs)):
        made = new_version(first, by=None, calibrated_own_knowledge=set_for, **changes)
        with pytest.raises(PolicyError, match=said):
            activate(made)
        assert Policy.objects.get(is_active=True) == first

    made = new_version(first, by=None, calibrated_own_knowledge=runs, **changes)
    assert activate(made).is_active


@pytest.mark.parametrize(
    ("timing", "command"),
    [
        (RetrievalTiming.BOUNDARY, "calibrate min_known"),
        (RetrievalTiming.MONITORED, "calibrate monitor"),
        (RetrievalTiming.HISTORY, "studies cbdr_timing"),
        (RetrievalTiming.LOG_PROBABILITY, "studies cbdr_timing"),
    ],
)
def test_who_may_not_activate_is_told_what_chooses_that_timings_threshold(
    timing, command
):
    first = ensure_default_policy(make_knowledge_base())
    made = new_version(first, by=None, scope=Scope.ADAPTIVE, retrieval_timing=timing)

    with pytest.raises(PolicyError) as refused:
        activate(made)

    said = str(refused.value)
    commands = ("calibrate min_known", "calibrate monitor", "studies cbdr_timing")
    assert [each for each in commands if each in said] == [command]


def test_by_default_nothing_outside_the_knowledge_base_is_answered():
    ensure_default_policy(make_knowledge_base())

    answer = ask(CAPITAL, asker=make_user(), channel="api")

    assert answer.outcome == Answer.Outcome.REFUSED
    assert answer.boundary == {}


def test_an_unsourced_answer_is_no_sign_of_another_language_model(bundled_base):
    adaptive(0.0)
    ask(CAPITAL, asker=make_user(), channel="api")

    assert current_fingerprints().language_model == ""


def test_an_evaluation_judges_what_the_model_answers_by_itself(bundled_base):
    policy = adaptive(0.0)
    case = Case("1", CAPITAL, is_answerable=True)
    suite = AskedSuite(
        name="one", protocol="", knowledge_base=policy.knowledge_base, policy=policy,
        cases=[case], scoring=by_label, about={},
    )  # fmt: skip

    judged = suite.judge("1")

    assert judged.answer_id is not None
    assert (judged.is_answered, judged.gate) == (True, "boundary")
    assert "Paris" in Answer.objects.get(pk=judged.answer_id).text


@pytest.mark.parametrize(
    ("scope", "timing"),
    [
        (Scope.ADAPTIVE, RetrievalTiming.ALWAYS),
        (Scope.KNOWLEDGE_BASE, RetrievalTiming.BOUNDARY),
    ],
)
def test_a_scope_takes_only_its_own_timings(scope, timing):
    first = ensure_default_policy(make_knowledge_base())

    with pytest.raises(PolicyError, match="does not go with the retrieval timing"):
        new_version(first, by=None, scope=scope, retrieval_timing=timing)
