"""Whether the model answers by itself, where a policy asks it before anything is looked for."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qa.pipeline.closed_book import ClosedBookModels
from qa.pipeline.gates import Gate
from qa.pipeline.language_model import Generation, NoProbes
from qa.pipeline.monitored import SegmentWriter
from qa.pipeline.policy import RetrievalTiming, Scope
from qa.pipeline.replay import Played, replay
from qa.pipeline.self_knowledge import HAS_DRAFT, KNOWN_PROBABILITY
from qa.pipeline.values import Calibration, Outcome, Question, stage_name
from tests.qa.pipeline.values import (
    GivenModel,
    GivenRetriever,
    make_evidence,
    make_generation,
    make_policy,
    make_retrieval,
    never_load,
    run_pipeline,
)

OWN = "o" * 64
FROM_EVIDENCE = GivenModel(make_generation("It costs 12 euros."))


@dataclass
class GivenKnowledge:
    """Says how sure it is, and counts the drafts that it was asked for."""

    known_probability: float | None
    draft: str = "Twelve euros."
    drafts: int = 0
    examples: tuple[str, ...] = ("one", "two")
    signals: tuple[tuple[str, float | None], ...] = (("boundary_confidence", 0.25),)
    asked: list[str] = field(default_factory=list)

    @property
    def fingerprint(self) -> str:
        return OWN

    def consider(self, question: Question) -> "GivenKnowledge":
        self.asked.append(question.text)
        return self

    def answer(self) -> Generation:
        self.drafts += 1
        return make_generation(self.draft, cited=(), verdict_probability=None)


def never_write() -> SegmentWriter:
    raise AssertionError("a monitored answer was asked for")


def run(own: GivenKnowledge, **policy):
    changes = {
        "scope": Scope.ADAPTIVE,
        "retrieval_timing": RetrievalTiming.BOUNDARY,
        "own_knowledge_first": True,
        "min_known": 0.8,
    }
    retriever = GivenRetriever(make_retrieval(make_evidence(distance=0.4)))
    values = list(
        run_pipeline(
            "What is the replacement fee?",
            retriever=retriever,
            language_model=lambda: FROM_EVIDENCE,
            probes=lambda _model: NoProbes(),
            policy=make_policy(**changes | policy),
            closed_book=ClosedBookModels(lambda: own, never_write),
        )
    )
    outcome = values[-1]
    assert isinstance(outcome, Outcome)
    return outcome, values, retriever


def test_what_the_model_knows_is_answered_without_looking_and_says_so():
    own = GivenKnowledge(0.8)

    outcome, values, retriever = run(own)

    assert [stage_name(value) for value in values] == [
        "question",
        "boundary",
        "outcome",
    ]
    assert (outcome.answered, outcome.gate) == (True, Gate.BOUNDARY)
    assert outcome.answer == "Twelve euros."
    assert (outcome.evidence, outcome.citations, retriever.looks) == ((), (), [])
    assert (outcome.language_model, outcome.embedder) == ("", "")
    assert outcome.boundary is not None
    assert outcome.boundary.fingerprint == OWN
    assert outcome.boundary.examples == ("one", "two")
    assert {s.name: s.value for s in outcome.signals} == {
        KNOWN_PROBABILITY: 0.8, "boundary_confidence": 0.25, HAS_DRAFT: 1.0,
    }  # fmt: skip


@pytest.mark.parametrize("known_probability", [0.79, None])
def test_what_it_does_not_know_is_answered_from_evidence(known_probability):
    own = GivenKnowledge(known_probability)

    outcome, _, retriever = run(own)

    assert (outcome.answered, outcome.gate) == (True, None)
    assert outcome.answer == "It costs 12 euros."
    assert (own.drafts, retriever.looks) == (0, [False])
    assert {s.name: s.passed for s in outcome.signals}[KNOWN_PROBABILITY] is False


@pytest.mark.parametrize("draft", ["", "  ", "I don't know."])
def test_a_draft_that_says_nothing_lets_the_question_go_on(draft):
    outcome, _, retriever = run(GivenKnowledge(1.0, draft=draft))

    assert outcome.answer == "It costs 12 euros."
    assert outcome.gate is None
    assert retriever.looks == [False]
    assert {s.name: s.value for s in outcome.signals}[HAS_DRAFT] == 0.0


def test_above_one_it_never_answers_by_itself():
    own = GivenKnowledge(1.0)

    outcome, _, _ = run(own, min_known=1.01)

    assert outcome.gate is None
    assert own.drafts == 0


def test_what_another_way_of_telling_was_set_for_is_not_relied_on():
    for set_for, gate in ((f"{OWN} x", Gate.BOUNDARY), ("x", None)):
        outcome, _, _ = run(GivenKnowledge(1.0), calibrated_own_knowledge=set_for)
        assert outcome.gate is gate


def test_in_the_scope_of_the_knowledge_base_nobody_asks_what_the_model_knows():
    own = GivenKnowledge(1.0)

    outcome, _, _ = run(
        own, scope=Scope.KNOWLEDGE_BASE, retrieval_timing=RetrievalTiming.ALWAYS
    )

    assert (own.asked, outcome.boundary) == ([], None)
    assert outcome.answer == "It costs 12 euros."


def test_thresholds_count_as_calibrated_only_if_they_were_set_for_this():
    calibrated, _, _ = run(
        GivenKnowledge(1.0), is_calibrated=True, calibrated_own_knowledge=OWN
    )
    by_hand, _, _ = run(GivenKnowledge(1.0), is_calibrated=True)

    assert calibrated.calibration is Calibration.CURRENT
    assert by_hand.calibration is Calibration.HAND_SET


@given(
    known_probability=st.none() | st.floats(0, 1),
    least=st.floats(0, 1.01),
    draft=st.sampled_from(("Twelve euros.", "", "I don't know.")),
)
def test_stored_signals_tell_again_what_was_decided(known_probability, least, draft):
    outcome, _, _ = run(GivenKnowledge(known_probability, draft=draft), min_known=least)

    signals = {s.name: s.value for s in outcome.signals}
    again = replay(signals, outcome.policy)

    assert again.outcome is Played.ANSWERED
    assert again.gate is None


def test_what_was_never_looked_for_is_unknown_to_a_policy_that_looks():
    outcome, _, _ = run(GivenKnowledge(1.0))
    signals = {s.name: s.value for s in outcome.signals}

    assert replay(signals, make_policy()).outcome is Played.UNKNOWN


def test_a_known_probability_is_held_against_no_threshold_of_another_timing():
    outcome, _, _ = run(GivenKnowledge(1.0))
    signals = {s.name: s.value for s in outcome.signals}
    other = make_policy(
        scope=Scope.ADAPTIVE, retrieval_timing=RetrievalTiming.HISTORY, min_known=0.1,
        own_knowledge_first=True,
    )  # fmt: skip

    assert replay(signals, outcome.policy).outcome is Played.ANSWERED
    assert replay(signals, other).outcome is Played.UNKNOWN


def test_what_was_never_drafted_is_unknown_to_a_policy_that_would_draft():
    outcome, _, _ = run(GivenKnowledge(0.5))
    signals = {s.name: s.value for s in outcome.signals}
    bold = make_policy(
        scope=Scope.ADAPTIVE, retrieval_timing=RetrievalTiming.BOUNDARY, min_known=0.5,
        own_knowledge_first=True,
    )  # fmt: skip

    assert replay(signals, bold).outcome is Played.UNKNOWN


def test_the_language_model_of_evidence_is_not_loaded_for_what_is_known():
    values = run_pipeline(
        "What is the replacement fee?",
        retriever=GivenRetriever(make_retrieval()),
        language_model=never_load,
        probes=lambda _model: NoProbes(),
        policy=make_policy(
            scope=Scope.ADAPTIVE,
            retrieval_timing=RetrievalTiming.HISTORY,
            own_knowledge_first=True,
        ),
        closed_book=ClosedBookModels(lambda: GivenKnowledge(1.0), never_write),
    )

    outcome = list(values)[-1]
    assert isinstance(outcome, Outcome)
    assert outcome.gate is Gate.BOUNDARY
