"""What gates in shadow would have refused, counted by day."""

import random
from collections.abc import Mapping
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.roles import Role
from qa.answers.waterfall import shadow_verdict
from qa.dashboard.counting import count_days
from qa.dashboard.shadows import ShadowGate, read_shadows
from qa.dashboard.traffic import Scope, last_days
from qa.models import Answer, DailyShadow, Policy, Review, Vote
from qa.pipeline.gates import SIGNALS, Gate, switches
from qa.policies.services import ensure_default_policy, new_version
from tests.factories import make_entry, make_knowledge_base, make_user
from tests.qa.answer_rows import make_answer

pytestmark = pytest.mark.django_db

SUPPORTED = {"readable": 1.0, "citations_verified": 1.0, "unsupported_facts": 0.0}
UNSUPPORTED = {**SUPPORTED, "unsupported_facts": 2.0}


def version(*, off: tuple[str, ...], slug: str = "cards", **fields) -> Policy:
    base = ensure_default_policy(make_knowledge_base(slug))
    return new_version(base, by=None, **dict.fromkeys(off, False), **fields)


def shown(policy: Policy, measured: Mapping[str, float | None], **fields) -> Answer:
    """Make an answer that was shown, with signals beside their stored limits."""
    value = policy.as_value()
    signals = [
        {
            "gate": SIGNALS[name].gate,
            "name": name,
            "value": number,
            "threshold": value.alpha
            if name == "distance_over_confidence"
            else SIGNALS[name].limit_in(value),
            "passed": None,
        }
        for name, number in measured.items()
    ]
    cited = fields.pop("cited", None) or (make_entry(),)
    return make_answer(
        make_user(), cited=cited, policy=policy, signals=signals, **fields
    )


def judge(answer: Answer, *, correctness: int, **fields) -> Review:
    return Review.objects.create(
        answer=answer,
        state=Review.State.DONE,
        reviewed_at=timezone.now(),
        completeness=2,
        correctness=correctness,
        truthfulness=2,
        **fields,
    )


def test_what_a_gate_in_shadow_would_have_refused_is_counted_with_what_is_said_of_it():
    policy = version(off=("support_check",))
    passed = shown(policy, SUPPORTED)
    refused = [shown(policy, UNSUPPORTED) for _ in range(3)]
    judge(passed, correctness=0)
    judge(refused[0], correctness=2)
    judge(refused[1], correctness=0)
    judge(refused[1], correctness=2, round=2)
    Vote.objects.create(answer=refused[2], user=make_user(), is_up=False)
    Vote.objects.create(answer=passed, user=make_user(), is_up=True)

    count_days()

    assert read_shadows(Scope(last_days(7))) == (
        ShadowGate(Gate.SOFT_REFUSAL, 4, 3, right=1, wrong=1, up=0, down=1),
    )


def test_refusals_and_enforced_gates_are_not_counted():
    enforced = version(off=())
    shown(enforced, UNSUPPORTED)
    shown(
        version(off=("support_check",)), UNSUPPORTED, channel=Answer.Channel.EVALUATION
    )
    make_answer(make_user(), policy=version(off=("support_check",)))

    count_days()

    assert not DailyShadow.objects.exists()


def test_a_confidence_without_a_minimum_judges_nothing():
    shown(version(off=()), {"answer_confidence": 0.1})
    count_days()
    assert not DailyShadow.objects.exists()

    shown(version(off=(), min_confidence=0.5), {"answer_confidence": 0.1})
    count_days()

    row = DailyShadow.objects.get()
    assert (row.gate, row.answers, row.refused) == ("abstention", 1, 1)


@pytest.mark.parametrize("shows_anyway", [True, False])
def test_a_missing_confidence_refuses_unless_the_policy_shows_answers_without(
    shows_anyway,
):
    policy = version(
        off=("abstention",), min_confidence=0.5, answer_without_probe=shows_anyway
    )
    shown(policy, {"answer_confidence": None})

    count_days()

    assert DailyShadow.objects.get().refused == (0 if shows_anyway else 1)


@pytest.mark.slow
def test_the_count_says_what_each_answers_page_says():
    draw, entry = random.Random(7), make_entry()
    gates = (Gate.HARD_REFUSAL, Gate.ENTRY, Gate.SOFT_REFUSAL, Gate.ABSTENTION,
             Gate.AGREEMENT)  # fmt: skip
    now, expected = timezone.now(), {}
    for number in range(60):
        off = tuple(name for name in sorted(switches()) if draw.random() < 0.5)
        policy = version(
            off=off,
            min_confidence=draw.choice((0.0, 0.5)),
            min_joint_confidence=draw.choice((0.0, 0.5)),
        )
        answer = shown(policy, measured(draw, policy), cited=(entry,))
        moment = now - timedelta(days=number)
        Answer.objects.filter(pk=answer.pk).update(created_at=moment)
        for gate in gates:
            verdict = shadow_verdict(gate, answer)
            if verdict is False:
                expected[moment.date(), gate] = 1
    assert len(expected) > 30

    count_days(at=now)

    rows = DailyShadow.objects.filter(tag=None, refused__gt=0)
    assert {(row.day, row.gate): row.refused for row in rows} == expected


def measured(draw: random.Random, policy: Policy) -> dict[str, float | None]:
    """Return signals that the policy's enforced gates let pass: the others fail at times."""
    value = policy.as_value()
    ratio = draw.choice((0.5, 1.1)) if not value.hard_refusal else 0.5
    found: dict[str, float | None] = {
        "distance_over_confidence": ratio,
        "verified_ratio": ratio,
        "unverified_ratio": None,
    }
    good = {
        "answerability": 0.95, "readable": 1.0, "verdict": 1.0, "verdict_probability": 0.9,
        "not_a_refusal_in_prose": 1.0, "citations_verified": 1.0, "unsupported_facts": 0.0,
        "sentence_support": 0.9, "answer_confidence": 0.8, "joint_confidence": 0.8,
        "disagreeing_sources": 0.0,
    }  # fmt: skip
    bad = {
        "answerability": 0.1, "verdict": 0.0, "verdict_probability": 0.1,
        "not_a_refusal_in_prose": 0.0, "citations_verified": 0.0, "unsupported_facts": 2.0,
        "sentence_support": 0.1, "answer_confidence": 0.1, "joint_confidence": None,
        "disagreeing_sources": 1.0,
    }  # fmt: skip
    for name, number in good.items():
        may_fail = name in bad and not SIGNALS[name].is_enforced(value)
        found[name] = bad[name] if may_fail and draw.random() < 0.2 else number
    if draw.random() < 0.3:
        del found["verdict_probability"]
    return found


def test_a_review_of_an_ended_day_is_counted_at_the_next_run():
    answer = shown(version(off=("support_check",)), UNSUPPORTED)
    before = timezone.now() - timedelta(days=9)
    Answer.objects.filter(pk=answer.pk).update(created_at=before)
    count_days()
    review = judge(answer, correctness=0)

    count_days()
    assert DailyShadow.objects.get().wrong == 1

    review.delete()
    count_days()
    assert DailyShadow.objects.get().wrong == 0


def test_who_has_a_role_in_one_knowledge_base_reads_its_gates_alone(client):
    shown(version(off=("support_check",)), UNSUPPORTED)
    loans = make_knowledge_base("loans")
    expert = make_user()
    expert.knowledge_roles.create(knowledge_base=loans, role="sme")
    count_days()
    client.force_login(expert)

    own = client.get(reverse("api_dashboard")).json()
    other = client.get(reverse("api_dashboard"), {"knowledge_base": "cards"})

    assert own["shadows"] == []
    assert other.status_code == 403


def test_the_page_says_how_many_answers_a_gate_would_have_refused(enter):
    policy = version(off=("support_check",))
    judge(shown(policy, UNSUPPORTED), correctness=0)
    for _ in range(3):
        shown(policy, SUPPORTED)
    count_days()

    page = enter(Role.SME).get(reverse("dashboard")).content.decode()

    assert "Gates in shadow: what they would have refused" in page
    assert "<td>4</td><td>1</td><td>25.0\xa0%</td><td>0</td><td>1</td>" in page
    assert "Thumbs up" not in page  # nobody voted
