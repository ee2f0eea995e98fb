"""What is done where the sources of an answer contradict each other."""

import pytest

from kb.types import Contradiction
from qa.pipeline.gates import Gate, Reason
from qa.pipeline.language_model import NoProbes
from qa.pipeline.replay import Played, flat, replay
from qa.pipeline.values import Outcome
from tests.qa.pipeline.values import (
    GivenModel,
    GivenRetriever,
    GivenScorer,
    make_evidence,
    make_generation,
    make_policy,
    make_retrieval,
    never_load,
    run_pipeline,
)

TWELVE = make_evidence(distance=0.4)
FIFTEEN = make_evidence("A replacement card costs 15 euros.", distance=0.5, entry_id=2)
UNSURE = make_evidence(
    "A replacement card costs 15 euros.", distance=0.5, entry_id=2, confidence=0.8
)
OPPOSED = Contradiction(7, (1, 2), (TWELVE.text, FIFTEEN.text))


def run(
    *found,
    opposed=(OPPOSED,),
    unread=(),
    model=None,
    question="What is the fee?",
    scores=(),
    **policy,
):
    retriever = GivenRetriever(
        make_retrieval(*found), opposed=opposed, unread=frozenset(unread)
    )
    given = model or GivenModel(make_generation("It costs 12 euros."))
    *_, outcome = run_pipeline(
        question,
        retriever=retriever,
        language_model=lambda: given,
        probes=lambda _model: NoProbes(),
        verifier=(lambda: GivenScorer(list(scores))) if scores else None,
        policy=make_policy(**policy),
    )
    assert isinstance(outcome, Outcome)
    return outcome


def test_an_answer_that_other_evidence_contradicts_is_refused_with_both_quotes():
    outcome = run(TWELVE, FIFTEEN)

    assert (outcome.gate, outcome.reason) == (Gate.AGREEMENT, Reason.SOURCES_DISAGREE)
    assert outcome.contradictions == (OPPOSED,)
    assert {piece.entry_id for piece in outcome.near_misses} == {1, 2}
    assert outcome.citations == ()


def test_a_policy_may_show_it_with_the_notice():
    outcome = run(TWELVE, FIFTEEN, sources_must_agree=False)

    assert outcome.answered
    assert outcome.contradictions == (OPPOSED,)
    assert {s.name: s.passed for s in outcome.signals}["disagreeing_sources"] is None


def test_a_contradiction_of_what_was_not_used_is_none():
    third = make_evidence("Cards are blue.", distance=0.6, entry_id=3)
    elsewhere = Contradiction(8, (2, 3), (FIFTEEN.text, third.text))

    assert run(TWELVE, FIFTEEN, third, opposed=(elsewhere,)).answered


@pytest.mark.parametrize(("other", "is_refused"), [(0.95, True), (0.3, False)])
def test_what_does_not_answer_the_question_is_shown_beside_and_refuses_nothing(
    other, is_refused
):
    outcome = run(TWELVE, FIFTEEN, scores=[0.99, other], model=never_load)

    assert outcome.answered is not is_refused
    assert outcome.contradictions == (OPPOSED,)
    assert measured(outcome)["disagreeing_sources"] == is_refused


def measured(outcome):
    return {each.name: each.value for each in outcome.signals}


def test_what_nobody_verified_is_shown_beside_a_verified_entry_and_refuses_nothing():
    outcome = run(TWELVE, UNSURE)

    assert outcome.answered
    assert outcome.contradictions == (OPPOSED,)
    assert {piece.entry_id for piece in outcome.evidence} == {1, 2}
    assert measured(outcome)["disagreeing_sources"] == 0


def test_what_nobody_verified_is_shown_beside_a_word_for_word_answer_too():
    question = "What does a card cost?"
    first = make_evidence("12 euros.", question=question, distance=0.0)

    outcome = run(first, UNSURE, question=question, model=never_load)

    assert outcome.gate is Gate.VERBATIM
    assert outcome.contradictions == (OPPOSED,)


def test_an_answer_from_what_nobody_verified_gives_way_to_a_verified_entry():
    cites_unsure = GivenModel(make_generation("It costs 15 euros.", cited=(2,)))

    outcome = run(TWELVE, UNSURE, model=cites_unsure)

    assert outcome.reason is Reason.SOURCES_DISAGREE


@pytest.mark.parametrize("unread", [1, 2])
def test_what_was_not_compared_yet_is_told_and_refuses_nothing(unread):
    outcome = run(TWELVE, FIFTEEN, opposed=(), unread=[unread])
    last = outcome.signals[-1]

    assert outcome.answered
    assert (last.name, last.value, last.passed) == ("sources_not_compared", 1.0, None)


def test_a_single_piece_of_evidence_raises_no_false_alarm():
    assert "sources_not_compared" not in measured(run(TWELVE, opposed=(), unread=[1]))


def test_what_nobody_verified_raises_no_alarm_about_a_verified_entry():
    assert "sources_not_compared" not in measured(
        run(TWELVE, UNSURE, opposed=(), unread=[1, 2])
    )


def test_a_word_for_word_answer_is_refused_too():
    question = "What does a card cost?"
    first = make_evidence("12 euros.", question=question, distance=0.0)
    second = make_evidence("15 euros.", question=question, distance=0.0, entry_id=2)

    refused = run(first, second, question=question, model=never_load)
    shown = run(
        first, second, question=question, model=never_load, sources_must_agree=False
    )

    assert refused.gate is Gate.AGREEMENT
    assert shown.gate is Gate.VERBATIM
    assert {piece.entry_id for piece in shown.evidence} == {1, 2}


def test_a_refused_question_asks_for_no_contradictions():
    class Silent(GivenRetriever):
        def contradictions(self, entry_ids):
            raise AssertionError("a refusal looked for contradictions")

    far = make_evidence(distance=1.0)
    *_, outcome = run_pipeline(
        "What is the fee?",
        retriever=Silent(make_retrieval(far, UNSURE)),
        language_model=never_load,
        probes=lambda _model: NoProbes(),
        policy=make_policy(alpha=0.3),
    )

    assert isinstance(outcome, Outcome)
    assert outcome.gate is Gate.HARD_REFUSAL


@pytest.mark.parametrize("question", ["What is the fee?", "What does a card cost?"])
def test_a_replay_decides_as_the_gate_does(question):
    first = make_evidence("It costs 12 euros.", question="What does a card cost?")
    outcome = run(first, FIFTEEN, question=question, sources_must_agree=False)
    signals = flat(
        [{"name": each.name, "value": each.value} for each in outcome.signals]
    )

    assert replay(signals, make_policy()).gate is Gate.AGREEMENT
    free = make_policy(sources_must_agree=False)
    assert replay(signals, free).outcome is Played.ANSWERED
