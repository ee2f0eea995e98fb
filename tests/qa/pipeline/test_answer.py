"""The pipeline as a whole, on values handed to it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.types import Excluded, Exclusion
from qa.pipeline.gates import Gate, Reason
from qa.pipeline.language_model import NoProbes
from qa.pipeline.values import Calibration, Outcome, stage_name
from tests.qa.pipeline.values import (
    MODEL,
    GivenModel,
    GivenRetriever,
    make_evidence,
    make_generation,
    make_policy,
    make_retrieval,
    never_load,
    run_pipeline,
)

NEAR = make_evidence(distance=0.4)
FAR = make_evidence(distance=1.0)
UNRELATED = make_evidence(distance=1.3)


def run(question="What is the replacement fee?", *, found=(NEAR,), hidden=(), model=never_load, second=None, route="exact", policy=None, probes=None):  # fmt: skip
    retriever = GivenRetriever(
        make_retrieval(*found, route=route),
        None if second is None else make_retrieval(*second, route=route, deep=True),
        hidden,
    )
    values = list(
        run_pipeline(
            question,
            retriever=retriever,
            language_model=model if model is never_load else lambda: model,
            probes=lambda _model: probes or NoProbes(),
            policy=policy or make_policy(),
        )
    )
    assert isinstance(values[-1], Outcome)
    return values[-1], values, retriever


def refusal(**inputs):
    outcome, _, _ = run(**inputs)
    assert not outcome.answered
    return outcome


def test_a_covered_question_is_answered_from_its_evidence():
    model = GivenModel(make_generation("It costs 12 euros."))

    outcome, values, _ = run(model=model)

    assert [stage_name(value) for value in values] == [
        "question", "retrieve", "verbatim", "hard_refusal", "generate", "support",
        "soft_refusal", "confidence", "abstention", "agreement", "outcome",
    ]  # fmt: skip
    assert outcome.answered
    assert (outcome.gate, outcome.reason, outcome.shown_reason) == (None, None, None)
    assert outcome.answer == "It costs 12 euros."
    assert [citation.entry_id for citation in outcome.citations] == [1]
    assert outcome.evidence == (NEAR,)
    assert outcome.near_misses == ()
    assert outcome.language_model == MODEL
    assert model.prompts[0].evidence == (NEAR,)


def test_a_hard_refusal_never_loads_the_language_model():
    outcome = refusal(found=(FAR,), model=never_load)

    assert (outcome.gate, outcome.reason) == (Gate.HARD_REFUSAL, Reason.TOO_FAR)
    assert outcome.language_model == ""
    assert outcome.generation is None


def test_a_refusal_has_near_misses_and_no_citations():
    outcome = refusal(found=(FAR, UNRELATED))

    assert outcome.near_misses == (FAR,)
    assert outcome.citations == ()
    assert outcome.evidence == ()
    assert outcome.answer == ""


@pytest.mark.parametrize(
    ("found", "hidden", "reason"),
    [
        ((), (), Reason.NOTHING_KNOWN),
        ((UNRELATED,), (), Reason.NOTHING_KNOWN),
        ((FAR,), (), Reason.TOO_FAR),
        # Near, but not trusted enough: verified it would have passed.
        ((make_evidence(distance=0.7, confidence=0.8),), (), Reason.UNVERIFIED_ONLY),
        ((make_evidence(distance=0.9, confidence=0.8),), (), Reason.TOO_FAR),
        ((FAR,), (Excluded(Exclusion.UNVERIFIED, 0.5, 0.3),), Reason.UNVERIFIED_ONLY),
        ((FAR,), (Excluded(Exclusion.UNVERIFIED, 0.9, 0.3),), Reason.TOO_FAR),
        ((FAR,), (Excluded(Exclusion.EXPIRED, 0.5, 1.0),), Reason.EXPIRED_ONLY),
        ((), (Excluded(Exclusion.EXPIRED, 0.5, 0.5),), Reason.NOTHING_KNOWN),
        ((), (Excluded(Exclusion.NOT_ENTITLED, 0.5, 1.0),), Reason.NOT_ENTITLED),
        # The nearest obstacle decides; at the same ratio the one that is mended soonest.
        (
            (),
            (
                Excluded(Exclusion.NOT_ENTITLED, 0.4, 1.0),
                Excluded(Exclusion.EXPIRED, 0.5, 1.0),
            ),
            Reason.NOT_ENTITLED,
        ),
        (
            (),
            (
                Excluded(Exclusion.NOT_ENTITLED, 0.5, 1.0),
                Excluded(Exclusion.UNVERIFIED, 0.5, 0.5),
                Excluded(Exclusion.EXPIRED, 0.5, 1.0),
            ),
            Reason.EXPIRED_ONLY,
        ),
    ],
)
def test_the_reason_is_the_obstacle_without_which_it_would_have_passed(
    found, hidden, reason
):
    assert refusal(found=found, hidden=hidden).reason is reason


@pytest.mark.parametrize("found", [(), (FAR,), (UNRELATED,)])
def test_what_the_asker_may_not_see_leaves_no_trace_in_the_refusal(found):
    hidden = (Excluded(Exclusion.NOT_ENTITLED, 0.3, 1.0),)

    told, without = refusal(found=found, hidden=hidden), refusal(found=found)

    assert told.reason is Reason.NOT_ENTITLED
    assert told.shown_reason is without.reason
    assert told.signals == without.signals
    assert told.near_misses == without.near_misses


def test_what_would_have_passed_is_a_signal_of_the_refusal():
    hidden = (
        Excluded(Exclusion.EXPIRED, 0.4, 0.5),
        Excluded(Exclusion.UNVERIFIED, 0.7, 0.5),
        Excluded(Exclusion.NOT_ENTITLED, 0.3, 1.0),
    )

    signals = refusal(found=(), hidden=hidden).signals

    assert {s.name: s.value for s in signals if "_if_" in s.name} == {
        "ratio_if_not_expired": 0.8,
        "ratio_if_verified": 0.7,
    }


def test_a_policy_may_reveal_that_the_asker_is_not_entitled():
    hidden = (Excluded(Exclusion.NOT_ENTITLED, 0.3, 1.0),)

    outcome = refusal(
        found=(), hidden=hidden, policy=make_policy(reveal_not_entitled=True)
    )

    assert outcome.shown_reason is Reason.NOT_ENTITLED


def test_a_second_deeper_look_can_turn_a_refusal_into_an_answer():
    model = GivenModel(make_generation("It costs 12 euros."))

    outcome, _, retriever = run(found=(FAR,), second=(NEAR,), route="hnsw", model=model)

    assert retriever.looks == [False, True]
    assert outcome.answered


def test_the_second_look_is_spent_only_before_a_refusal_and_where_it_can_tell_more():
    _, _, sure = run(model=GivenModel(make_generation()), route="hnsw")
    _, _, exact = run(found=(FAR,), route="exact")

    assert sure.looks == exact.looks == [False]


@given(
    pairs=st.lists(
        st.tuples(st.floats(0.0, 2.0), st.floats(0.05, 1.0)), min_size=0, max_size=4
    ),
    alphas=st.tuples(st.floats(0.0, 2.0), st.floats(0.0, 2.0)),
    same_question=st.booleans(),
)
def test_a_larger_alpha_never_refuses_what_a_smaller_one_let_pass(
    pairs, alphas, same_question
):
    question = "What is the replacement fee?"
    found = tuple(
        make_evidence(
            distance=distance,
            confidence=confidence,
            entry_id=number,
            question=question if same_question else "",
        )
        for number, (distance, confidence) in enumerate(pairs, start=1)
    )
    model = GivenModel(make_generation("It costs 12 euros."))

    def passes(alpha):
        outcome, _, _ = run(
            question, found=found, model=model, policy=make_policy(alpha=alpha)
        )
        return outcome.gate is not Gate.HARD_REFUSAL

    smaller, larger = sorted(alphas)
    assert not passes(smaller) or passes(larger)


@given(
    distance=st.floats(0.0, 2.0),
    confidence=st.floats(0.05, 1.0),
    alpha=st.floats(0.0, 2.0),
)
def test_hard_refusal_is_exactly_the_ratio_against_alpha(distance, confidence, alpha):
    outcome, _, _ = run(
        found=(make_evidence(distance=distance, confidence=confidence),),
        model=GivenModel(make_generation("It costs 12 euros.")),
        policy=make_policy(alpha=alpha),
    )

    assert (outcome.gate is Gate.HARD_REFUSAL) == (distance / confidence >= alpha)


def test_a_stale_policy_is_reported_and_answers_go_on():
    outcome, _, _ = run(
        model=GivenModel(make_generation("It costs 12 euros.")),
        policy=make_policy(calibrated_embedder="f" * 64),
    )

    assert outcome.calibration is Calibration.STALE
    assert outcome.answered


def test_a_stale_policy_refuses_everything_where_it_says_so():
    verbatim = make_evidence(distance=0.0, question="What is the replacement fee?")

    outcome = refusal(
        found=(verbatim,),
        policy=make_policy(calibrated_embedder="f" * 64, refuse_when_stale=True),
    )

    assert (outcome.gate, outcome.reason) == (Gate.HARD_REFUSAL, Reason.POLICY_STALE)


def test_another_language_model_makes_a_policy_stale_too():
    policy = make_policy(calibrated_language_model="f" * 64, refuse_when_stale=True)

    outcome = refusal(
        model=GivenModel(make_generation("It costs 12 euros.")), policy=policy
    )

    assert (outcome.gate, outcome.reason) == (Gate.SOFT_REFUSAL, Reason.POLICY_STALE)


def test_thresholds_from_labelled_answers_are_current_for_their_models():
    policy = make_policy(is_calibrated=True, calibrated_language_model=MODEL)

    outcome, _, _ = run(
        model=GivenModel(make_generation("It costs 12 euros.")), policy=policy
    )

    assert outcome.calibration is Calibration.CURRENT


def test_a_verbatim_answer_is_word_for_word_and_needs_no_language_model():
    piece = make_evidence(
        "It is 12 euros.\n\nAsk the hotline.",
        distance=0.1,
        question="What's the replacement fee",
    )

    outcome, _, _ = run("what is the REPLACEMENT fee?", found=(piece,))

    assert outcome.answered
    assert outcome.gate is Gate.VERBATIM
    assert outcome.answer == "It is 12 euros.\n\nAsk the hotline."
    assert [citation.quote for citation in outcome.citations] == [outcome.answer]
    assert outcome.evidence == (piece,)


@pytest.mark.parametrize(
    "changes",
    [
        {"distance": 0.36, "question": "What is the fee of a replacement?"},
        {"confidence": 0.9},
        {"question": "What is the silver card replacement fee?"},
    ],
)
def test_only_a_near_verified_entry_with_the_same_words_is_verbatim(changes):
    values = {"distance": 0.1, "question": "What is the replacement fee?"} | changes
    model = GivenModel(make_generation("It costs 12 euros."))

    outcome, _, _ = run(found=(make_evidence(**values),), model=model)

    assert outcome.gate is None
    assert len(model.prompts) == 1


def test_a_verbatim_distance_of_zero_switches_the_tier_off():
    piece = make_evidence(distance=0.0, question="What is the replacement fee?")

    outcome, _, _ = run(
        found=(piece,),
        model=GivenModel(make_generation("It costs 12 euros.")),
        policy=make_policy(verbatim_distance=0.0),
    )

    assert outcome.gate is None


@pytest.mark.parametrize(
    ("generation", "reason"),
    [
        (make_generation(malformed=True, answer=""), Reason.MALFORMED_OUTPUT),
        (make_generation(answer="  "), Reason.MODEL_DECLINED),
        (make_generation(verdict_probability=0.49), Reason.MODEL_DECLINED),
        (
            make_generation(verdict_probability=None, can_answer=False),
            Reason.MODEL_DECLINED,
        ),
        (make_generation("I don\u2019t know."), Reason.MODEL_DECLINED),
        (make_generation("It costs 15 euros."), Reason.UNSUPPORTED),
        (make_generation(cited=()), Reason.UNSUPPORTED),
        (make_generation(cited=(7,)), Reason.UNSUPPORTED),
        (make_generation(quotes=((1, "It is free."),)), Reason.UNSUPPORTED),
    ],
)
def test_what_the_model_declined_or_made_up_is_refused_softly(generation, reason):
    outcome = refusal(model=GivenModel(generation))

    assert (outcome.gate, outcome.reason) == (Gate.SOFT_REFUSAL, reason)
    assert outcome.shown_reason is reason
    assert (outcome.answer, outcome.citations) == ("", ())
    assert outcome.evidence == outcome.near_misses == (NEAR,)


def test_without_soft_refusal_the_verdict_is_recorded_and_not_enforced():
    model = GivenModel(make_generation("It costs 12 euros.", verdict_probability=0.1))

    outcome, _, _ = run(model=model, policy=make_policy(soft_refusal=False))

    assert outcome.answered
    signal = {signal.name: signal for signal in outcome.signals}["verdict_probability"]
    assert (signal.value, signal.threshold, signal.passed) == (0.1, 0.5, None)


def test_without_soft_refusal_a_made_up_number_is_refused_all_the_same():
    model = GivenModel(make_generation("It costs 15 euros."))

    outcome = refusal(model=model, policy=make_policy(soft_refusal=False))

    assert outcome.reason is Reason.UNSUPPORTED


def test_every_stage_is_timed_and_retrieving_tells_its_parts():
    outcome, _, _ = run(model=GivenModel(make_generation("It costs 12 euros.")))

    assert [time.stage for time in outcome.times] == [
        "question", "retrieve", "retrieve.embed", "retrieve.sql", "verbatim",
        "hard_refusal", "load", "generate", "support", "soft_refusal",
        "abstention", "agreement",
    ]  # fmt: skip
    assert all(time.milliseconds >= 0 for time in outcome.times)


@given(st.text(max_size=200))
def test_a_question_is_one_line_without_control_characters(text):
    _, values, _ = run(text, found=(FAR,))

    question = values[0].text
    assert question == " ".join(question.split())
    assert question.isprintable() or not any(ord(c) < 32 for c in question)
