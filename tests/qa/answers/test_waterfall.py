"""The page of an answer whose gates were in shadow: what they would have done."""

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from qa.answers.models import fetch_evidence
from qa.answers.waterfall import Step, recorded_signals, waterfall
from qa.management.commands.ask import print_answer
from qa.models import Policy
from qa.pipeline.gates import CONFIDENCES
from qa.policies.services import ensure_default_policy, new_version
from tests.factories import make_entry, make_knowledge_base, make_user
from tests.qa.answer_rows import make_answer

pytestmark = pytest.mark.django_db

HARD = {
    "distance_over_confidence": 0.5,
    "verified_ratio": 0.5,
    "unverified_ratio": None,
    "nearest_distance": 0.5,
}
SOFT = {
    "readable": 1.0,
    "answer_characters": 18.0,
    "verdict": 1.0,
    "verdict_probability": 0.9,
    "not_a_refusal_in_prose": 1.0,
    "citations_verified": 1.0,
    "unsupported_facts": 0.0,
}
THRESHOLDS = {
    "distance_over_confidence": 0.85,
    "verified_ratio": 0.85,
    "readable": 1.0,
    "verdict": 1.0,
    "verdict_probability": 0.65,
    "not_a_refusal_in_prose": 1.0,
    "citations_verified": 1.0,
    "unsupported_facts": 0.0,
}


def _gate_of(name: str) -> str:
    if name in CONFIDENCES:
        return "abstention"
    return "hard_refusal" if name in HARD else "soft_refusal"


def shadowed(*switches: str) -> Policy:
    base = ensure_default_policy(make_knowledge_base())
    return new_version(base, by=None, **dict.fromkeys(switches, False))


def steps(policy: Policy, **measured: float | None) -> dict[str, Step]:
    return {step.name: step for step in waterfall(row(policy, **measured))}


def row(policy: Policy, **measured: float | None) -> Any:
    signals = [
        {
            "gate": _gate_of(name),
            "name": name,
            "value": value,
            "threshold": THRESHOLDS.get(name),
            "passed": True if name == "readable" else None,
        }
        for name, value in {**HARD, **SOFT, **measured}.items()
    ]
    cited = (make_entry("A card costs 12 euros."),)
    return make_answer(make_user(), cited=cited, policy=policy, signals=signals)


ALL = ("hard_refusal", "soft_refusal", "support_check")


def test_a_gate_in_shadow_says_that_it_would_have_refused():
    far = {"distance_over_confidence": 1.1, "verified_ratio": 1.1}

    hard = steps(shadowed(*ALL), **far)["Hard refusal"]

    assert (hard.state, hard.verdict) == ("shadow", "Would have refused (shadow)")
    (ratio,) = [line for line in hard.signals if line.is_shadow]
    assert (ratio.value, ratio.rule, ratio.passed) == (
        "1.10",
        "above the limit of 0.85",
        False,
    )


def test_a_gate_in_shadow_that_would_have_passed_says_that():
    shown = steps(shadowed(*ALL))

    for name in ("Hard refusal", "Soft refusal"):
        assert shown[name].verdict == "Would have passed (shadow)"
        assert all(line.passed for line in shown[name].signals)


@pytest.mark.parametrize(
    ("measured", "label"),
    [
        ({"verdict_probability": 0.4}, "Probability that the model can answer"),
        ({"citations_verified": 0.0}, "Citations found in their entries"),
        ({"unsupported_facts": 2.0}, "Facts that no cited entry supports"),
    ],
)
def test_each_part_of_the_soft_gate_tells_what_it_missed(measured, label):
    soft = steps(shadowed(*ALL), **measured)["Soft refusal"]

    assert soft.state == "shadow"
    assert [line.label for line in soft.signals if line.passed is False] == [label]


def test_a_part_in_shadow_does_not_hide_that_the_rest_was_enforced():
    only_support = shadowed("support_check")

    passed = steps(only_support)["Soft refusal"]
    missed = steps(only_support, citations_verified=0.0)["Soft refusal"]

    assert passed.verdict == "Passed"
    assert missed.verdict == "Would have refused (shadow)"


def test_the_models_word_decides_nothing_beside_its_probability():
    soft = steps(shadowed(*ALL), verdict=0.0)["Soft refusal"]

    assert soft.state == "passed"
    assert "The model says that it can answer" not in [
        line.label for line in soft.signals
    ]


def test_what_a_shadow_was_judged_by_is_not_listed_again():
    listed = [line.label for line in recorded_signals(row(shadowed(*ALL)))]

    assert "Best verified evidence: distance ÷ confidence" in listed
    assert "Characters in the draft" in listed
    assert "Best evidence: distance ÷ confidence" not in listed
    assert "Best unverified evidence: distance ÷ confidence" not in listed


def test_the_page_shows_the_shadow(client):
    answer = row(shadowed(*ALL), distance_over_confidence=1.1, verified_ratio=1.1)
    client.force_login(answer.asker)

    page = client.get(f"/answers/{answer.pk}").content.decode()

    assert "Would have refused (shadow)" in page
    assert "not met (shadow)" in page


def test_the_command_prints_the_shadow():
    answer = row(shadowed(*ALL), distance_over_confidence=1.1, verified_ratio=1.1)
    fetch_evidence(answer, answer.asker)
    out = StringIO()

    print_answer(answer, answer.asker, Console(file=out, width=160))

    lines = {
        line.split()[0]: line for line in out.getvalue().splitlines() if line.split()
    }
    printed = out.getvalue()
    assert "would stop (shadow)" in printed
    assert "would pass (shadow)" in lines["verdict_probability"]
    assert "shadow" not in lines["nearest_distance"]


def test_abstention_in_shadow_tells_what_it_would_have_refused():
    base = ensure_default_policy(make_knowledge_base())
    policy = new_version(base, by=None, min_confidence=0.5, answer_without_probe=False)

    low = steps(policy, **HARD, **SOFT, answer_confidence=0.3)["Abstention"]
    sure = steps(policy, **HARD, **SOFT, answer_confidence=0.7)["Abstention"]

    assert (low.state, low.verdict) == ("shadow", "Would have refused (shadow)")
    assert (sure.state, sure.verdict) == ("passed", "Would have passed (shadow)")
    assert [s.is_shadow for s in low.signals] == [True]
