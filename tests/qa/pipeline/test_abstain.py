"""The abstention gate, on confidences handed to it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qa.pipeline.gates import CONFIDENCES, Gate, Reason, Signal
from qa.pipeline.language_model import Capture, Confidence, NoProbes
from qa.pipeline.values import Calibration, Outcome
from tests.qa.pipeline.values import (
    PROBES,
    GivenModel,
    GivenProbes,
    GivenRetriever,
    make_evidence,
    make_generation,
    make_policy,
    make_retrieval,
    run_pipeline,
)

_NONE_LEFT = "No probe is active for this language model."
_share = st.floats(0, 1, allow_nan=False)


def decided(confidence=None, *, generation=None, **policy):
    """Ask a covered question and return (outcome, the model, the probes)."""
    model = GivenModel(generation or make_generation())
    probes = GivenProbes(confidence) if confidence else NoProbes()
    *_, outcome = run_pipeline(
        "What does a card cost?",
        retriever=GivenRetriever(make_retrieval(make_evidence(distance=0.4))),
        language_model=lambda: model,
        probes=lambda _model: probes,
        policy=make_policy(**policy),
    )
    assert isinstance(outcome, Outcome)
    return outcome, model, probes


def signal(outcome: Outcome, name: str) -> Signal:
    (found,) = [each for each in outcome.signals if each.name == name]
    assert found.gate is Gate.ABSTENTION
    return found


@pytest.mark.parametrize(
    ("field", "least"), [(field, name) for name, field in CONFIDENCES.items()]
)
def test_an_answer_is_refused_for_any_confidence_below_its_least(field, least):
    name = least.removesuffix("_confidence")
    sure = {"answer": 0.8, "early": 0.8, "joint": 0.8}

    outcome, _, _ = decided(Confidence(**sure | {name: 0.5}), abstention=True, **{field: 0.6})  # fmt: skip
    passing, _, _ = decided(Confidence(**sure | {name: 0.6}), abstention=True, **{field: 0.6})  # fmt: skip

    assert (outcome.gate, outcome.reason) == (Gate.ABSTENTION, Reason.LOW_CONFIDENCE)
    assert outcome.shown_reason is Reason.LOW_CONFIDENCE
    assert (outcome.answer, outcome.citations) == ("", ())
    assert outcome.near_misses == outcome.evidence != ()
    assert signal(outcome, least).passed is False
    assert passing.answered
    assert signal(passing, least) == Signal(Gate.ABSTENTION, least, 0.6, 0.6, True)


@given(
    answer=st.none() | _share,
    early=st.none() | _share,
    joint=st.none() | _share,
    least=st.tuples(_share, _share, _share),
)
def test_in_shadow_everything_is_measured_and_nothing_refused(
    answer, early, joint, least
):
    outcome, _, _ = decided(
        Confidence(answer, early, joint),
        min_confidence=least[0],
        min_early_confidence=least[1],
        min_joint_confidence=least[2],
        answer_without_probe=False,
    )

    assert outcome.answered
    measured = [signal(outcome, name) for name in CONFIDENCES]
    assert [each.value for each in measured] == [answer, early, joint]
    assert [each.threshold for each in measured] == list(least)
    assert {each.passed for each in measured} == {None}


def test_too_little_early_confidence_ends_the_answer_before_it_begins():
    unsure = Confidence(answer=0.9, early=0.2, joint=0.9, along=(0.9,))

    outcome, model, _ = decided(unsure, abstention=True, min_early_confidence=0.3)

    assert (outcome.gate, outcome.reason) == (Gate.ABSTENTION, Reason.LOW_CONFIDENCE)
    assert len(model.prompts) == 1
    assert outcome.generation is not None
    assert outcome.generation.is_stopped
    assert "readable" not in {each.name for each in outcome.signals}
    assert signal(outcome, "early_confidence").passed is False
    assert signal(outcome, "answer_confidence").value is None
    assert {time.stage for time in outcome.times}.isdisjoint(
        {"support", "soft_refusal"}
    )


@pytest.mark.parametrize(
    "policy",
    [
        {"abstention": False, "min_early_confidence": 0.3},
        {"abstention": True, "min_early_confidence": 0.0},
    ],
)
def test_an_early_confidence_that_is_not_enforced_ends_nothing(policy):
    outcome, _, _ = decided(Confidence(early=0.2), **policy)

    assert outcome.answered
    assert signal(outcome, "early_confidence").value == 0.2


def test_a_probe_that_is_not_there_refuses_only_where_the_policy_says_so():
    lenient, _, _ = decided(abstention=True, min_confidence=0.5)
    strict, _, _ = decided(abstention=True, min_confidence=0.5, answer_without_probe=False)  # fmt: skip
    unneeded, _, _ = decided(abstention=True, answer_without_probe=False)

    assert lenient.answered
    assert unneeded.answered
    assert (strict.gate, strict.reason) == (Gate.ABSTENTION, Reason.NO_PROBE)
    assert lenient.confidence == strict.confidence == Confidence(missing=_NONE_LEFT)
    assert signal(lenient, "answer_confidence").passed is None
    assert signal(strict, "answer_confidence") == Signal(
        Gate.ABSTENTION, "answer_confidence", None, 0.5, False
    )


def test_too_little_confidence_is_the_reason_where_another_number_is_missing():
    outcome, _, _ = decided(
        Confidence(answer=0.2),
        abstention=True,
        min_confidence=0.5,
        min_joint_confidence=0.5,
        answer_without_probe=False,
    )

    assert outcome.reason is Reason.LOW_CONFIDENCE


def test_what_is_refused_softly_is_not_read():
    outcome, _, probes = decided(
        Confidence(answer=0.9), generation=make_generation("I do not know.")
    )

    assert outcome.gate is Gate.SOFT_REFUSAL
    assert outcome.confidence is None
    assert probes.signals == []
    assert "answer_confidence" not in {each.name for each in outcome.signals}


def test_probes_are_told_what_the_gates_and_the_model_measured():
    generation = make_generation(least_log_probability=math.log(0.25), entropy=0.7)

    outcome, _, probes = decided(Confidence(), generation=generation)

    (told,) = probes.signals
    assert told["verdict_probability"] == 0.9
    assert told["verified_ratio"] == 0.4
    assert told["least_token_probability"] == pytest.approx(0.25)
    assert told["mean_entropy"] == 0.7
    for name in ("least_token_probability", "mean_entropy"):
        assert signal(outcome, name) == Signal(
            Gate.ABSTENTION, name, told[name], None, None
        )


def test_a_probe_in_shadow_is_recorded_and_decides_nothing():
    confidence = Confidence(answer=0.9, shadows=(("lstm-7", 0.1),))

    outcome, _, _ = decided(confidence, abstention=True, min_confidence=0.5)

    assert outcome.answered
    assert signal(outcome, "lstm-7") == Signal(
        Gate.ABSTENTION, "lstm-7", 0.1, None, None
    )


@pytest.mark.parametrize("in_force", ["c" * 64, "", PROBES.split()[0]])
def test_other_probes_or_none_make_the_policy_stale_where_they_decide(in_force):
    set_for = {"calibrated_probes": PROBES, "min_confidence": 0.5}
    confidence = Confidence(answer=0.9, probes=in_force)

    told, _, _ = decided(confidence, abstention=True, **set_for)
    refused, _, _ = decided(confidence, abstention=True, refuse_when_stale=True, **set_for)  # fmt: skip
    shadow, _, _ = decided(confidence, refuse_when_stale=True, **set_for)

    assert (told.answered, told.calibration) == (True, Calibration.STALE)
    assert (refused.gate, refused.reason) == (Gate.ABSTENTION, Reason.POLICY_STALE)
    assert (shadow.answered, shadow.calibration) == (True, Calibration.HAND_SET)


@pytest.mark.parametrize("set_for", [PROBES, f"x y | {PROBES}", PROBES.split()[1]])
def test_a_policy_is_current_while_all_probes_that_it_was_set_for_are_in_force(set_for):
    outcome, _, _ = decided(
        Confidence(answer=0.9, probes=PROBES),
        abstention=True,
        min_confidence=0.5,
        calibrated_probes=set_for,
        is_calibrated=True,
    )

    assert outcome.calibration is Calibration.CURRENT
    assert outcome.probes == PROBES


def test_without_probes_nothing_is_kept():
    assert NoProbes().capture(least_early=0.5) == Capture()
    assert NoProbes().fingerprints == ""
