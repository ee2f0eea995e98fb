"""What the model knows by itself answers only what nothing in the knowledge base covers."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.types import Evidence, Excluded, Exclusion
from qa.evaluation.cases import LabelledAnswer
from qa.evaluation.decisions import table_of
from qa.pipeline.closed_book import ClosedBookModels
from qa.pipeline.gates import Gate, Reason
from qa.pipeline.language_model import NoProbes
from qa.pipeline.policy import RetrievalTiming, Scope
from qa.pipeline.replay import Played, replay
from qa.pipeline.self_knowledge import HAS_DRAFT, KNOWN_PROBABILITY
from qa.pipeline.values import Outcome, StageValue, stage_name
from tests.qa.calibration.labelled_answers import any_signals
from tests.qa.pipeline.monitored_writers import GivenWriter, draft
from tests.qa.pipeline.test_closed_book import (
    FROM_EVIDENCE,
    OWN,
    GivenKnowledge,
    never_write,
)
from tests.qa.pipeline.values import (
    GivenRetriever,
    GivenScorer,
    make_evidence,
    make_policy,
    make_retrieval,
    run_pipeline,
)

QUESTION = "What is the replacement fee?"
NEAR = make_evidence("A replacement card costs 12 euros.", distance=0.4)
FAR = make_evidence("Cards are made of plastic.", distance=1.1)
UNVERIFIED = make_evidence("It costs 9 euros.", distance=0.8, confidence=0.8)


def run(
    own: GivenKnowledge,
    *found: Evidence,
    hidden: Sequence[Excluded] = (),
    scores: Sequence[float] | None = None,
    **changes: Any,
) -> tuple[Outcome, list[StageValue]]:
    policy = {
        "scope": Scope.ADAPTIVE,
        "retrieval_timing": RetrievalTiming.BOUNDARY,
        "min_known": 0.8,
        "min_sentence_support": 0.0,  # the scorer knows questions only
    }
    retrieval = make_retrieval(*found)
    values = list(
        run_pipeline(
            QUESTION,
            retriever=GivenRetriever(retrieval, retrieval, hidden),
            language_model=lambda: FROM_EVIDENCE,
            probes=lambda _model: NoProbes(),
            verifier=None if scores is None else (lambda: GivenScorer(scores)),
            policy=make_policy(**policy | changes),
            closed_book=ClosedBookModels(lambda: own, never_write),
        )
    )
    outcome = values[-1]
    assert isinstance(outcome, Outcome)
    return outcome, values


def measured(outcome: Outcome) -> dict[str, float | None]:
    return {signal.name: signal.value for signal in outcome.signals}


def test_what_evidence_covers_is_answered_by_it_however_sure_the_model_is():
    own = GivenKnowledge(1.0)

    outcome, _ = run(own, NEAR)

    assert (outcome.answered, outcome.gate) == (True, None)
    assert outcome.answer == "It costs 12 euros."
    assert (own.asked, outcome.boundary) == ([], None)


def test_a_verified_entry_that_answers_comes_before_what_the_model_knows():
    own = GivenKnowledge(1.0)

    outcome, _ = run(own, NEAR, scores=[0.95])

    assert (outcome.gate, outcome.answer) == (Gate.ENTRY, NEAR.text)
    assert own.asked == []


@pytest.mark.parametrize("found", [(), (FAR,)])
def test_what_nothing_covers_is_answered_by_itself_and_rests_on_no_entry(found):
    own = GivenKnowledge(0.8)

    outcome, values = run(own, *found)

    assert [stage_name(value) for value in values] == [
        "question", "retrieve", "verbatim", "hard_refusal", "boundary", "outcome",
    ]  # fmt: skip
    assert (outcome.answered, outcome.gate) == (True, Gate.BOUNDARY)
    assert (outcome.answer, outcome.reason) == ("Twelve euros.", None)
    assert (outcome.evidence, outcome.citations, outcome.near_misses) == ((), (), ())
    assert outcome.boundary is not None
    assert outcome.boundary.fingerprint == OWN


def test_what_no_entry_answers_by_the_verifier_is_answered_by_itself():
    outcome, _ = run(GivenKnowledge(1.0), NEAR, scores=[0.1])

    assert (outcome.answered, outcome.gate) == (True, Gate.BOUNDARY)


@pytest.mark.parametrize(
    "own", [GivenKnowledge(0.79), GivenKnowledge(None), GivenKnowledge(1.0, draft="")]
)
def test_where_the_model_does_not_know_either_the_refusal_stays_as_it_was(own):
    outcome, _ = run(own, FAR)

    assert (outcome.answered, outcome.gate) == (False, Gate.HARD_REFUSAL)
    assert outcome.reason is Reason.TOO_FAR
    assert outcome.near_misses == (FAR,)
    assert KNOWN_PROBABILITY in measured(outcome)


@pytest.mark.parametrize(
    ("found", "hidden", "changes", "reason"),
    [
        ((), [Excluded(Exclusion.EXPIRED, 0.5, 1.0)], {}, Reason.EXPIRED_ONLY),
        ((UNVERIFIED,), [], {}, Reason.UNVERIFIED_ONLY),
        (
            (),
            [Excluded(Exclusion.NOT_ENTITLED, 0.5, 1.0)],
            {"reveal_not_entitled": True},
            Reason.NOT_ENTITLED,
        ),
    ],
)
def test_where_an_obstacle_is_the_reason_nobody_asks_what_the_model_knows(
    found, hidden, changes, reason
):
    own = GivenKnowledge(1.0)

    outcome, _ = run(own, *found, hidden=hidden, **changes)

    assert (outcome.answered, outcome.reason) == (False, reason)
    assert (own.asked, outcome.boundary) == ([], None)


def test_hidden_knowledge_is_not_overruled_and_looks_like_a_model_that_wrote_nothing():
    hidden = [Excluded(Exclusion.NOT_ENTITLED, 0.5, 1.0)]

    kept, values = run(GivenKnowledge(1.0), FAR, hidden=hidden)
    silent, _ = run(GivenKnowledge(1.0, draft=""), FAR)

    assert (kept.answered, kept.reason) == (False, Reason.NOT_ENTITLED)
    assert kept.shown_reason is silent.shown_reason is Reason.TOO_FAR
    assert kept.signals == silent.signals
    assert kept.boundary == silent.boundary
    assert (kept.answer, kept.generation) == ("", None)
    assert "Twelve" not in str(values)


def test_a_stale_policy_that_refuses_asks_nobody():
    own = GivenKnowledge(1.0)

    outcome, _ = run(own, calibrated_embedder="x" * 64, refuse_when_stale=True)

    assert (outcome.reason, own.asked) == (Reason.POLICY_STALE, [])


def monitored(*found: Evidence, writes: Any) -> Outcome:
    *_, outcome = run_pipeline(
        QUESTION,
        retriever=GivenRetriever(make_retrieval(*found)),
        language_model=lambda: FROM_EVIDENCE,
        probes=lambda _model: NoProbes(),
        policy=make_policy(
            scope=Scope.ADAPTIVE, retrieval_timing=RetrievalTiming.MONITORED
        ),
        closed_book=ClosedBookModels(
            lambda: GivenKnowledge(None), lambda: GivenWriter(writes)
        ),
    )
    assert isinstance(outcome, Outcome)
    return outcome


def test_a_monitored_answer_too_is_only_for_what_nothing_covers():
    def confident(_notes: object, _kept: object) -> Any:
        return draft("It costs 99 dollars.")

    def doubted(_notes: object, _kept: object) -> Any:
        return draft("It costs 99 dollars.", "99")

    assert monitored(NEAR, writes=confident).answer == "It costs 12 euros."
    assert monitored(FAR, writes=confident).gate is Gate.BOUNDARY
    refused = monitored(FAR, writes=doubted)
    assert (refused.gate, refused.reason) == (Gate.HARD_REFUSAL, Reason.TOO_FAR)
    assert refused.near_misses == (FAR,)
    assert refused.boundary is not None
    assert refused.boundary.segments == ()


_share = st.floats(0, 1, allow_nan=False)
_ratio = st.floats(0, 2, allow_nan=False)
_cases = st.fixed_dictionaries(
    {
        "known_probability": st.none() | _share,
        "draft": st.sampled_from(("Twelve euros.", "", "I don't know.")),
        "found": st.lists(st.sampled_from((NEAR, FAR, UNVERIFIED)), max_size=3),
        "hidden": st.none() | _ratio,
        "score": st.none() | _share,
    }
)
_changes = st.fixed_dictionaries(
    {
        "own_knowledge_first": st.booleans(),
        "alpha": _ratio,
        "hard_refusal": st.booleans(),
        "min_known": st.floats(0, 1.01),
        "min_answerability": _share,
        "min_entry_answer": _share,
    }
)


def decided(case: dict[str, Any], changes: dict[str, Any]) -> Outcome:
    own = GivenKnowledge(case["known_probability"], draft=case["draft"])
    hidden = case["hidden"]
    outcome, _ = run(
        own,
        *case["found"],
        hidden=[] if hidden is None else [Excluded(Exclusion.EXPIRED, hidden, 1.0)],
        scores=None if case["score"] is None else [case["score"]] * len(case["found"]),
        **changes,
    )
    return outcome


@given(case=_cases, changes=_changes)
def test_stored_signals_tell_again_what_was_decided_in_either_order(case, changes):
    outcome = decided(case, changes)

    again = replay(measured(outcome), outcome.policy)

    assert (again.outcome is Played.ANSWERED) is outcome.answered
    assert again.gate == (None if outcome.answered else outcome.gate)


@given(case=_cases, changes=st.tuples(_changes, _changes))
def test_under_another_order_or_threshold_nothing_is_made_up(case, changes):
    before, after = changes
    after = after | {"alpha": before["alpha"]}  # the verbatim tier heeds it
    logged, really = decided(case, before), decided(case, after)

    played = replay(measured(logged), really.policy).outcome

    if played is not Played.UNKNOWN:
        assert (played is Played.ANSWERED) == really.answered


_own_signals = st.fixed_dictionaries(
    {},
    optional={
        KNOWN_PROBABILITY: st.none() | _share,
        "boundary_confidence": st.none() | _share,
        HAS_DRAFT: st.none() | st.sampled_from((0.0, 1.0)),
        "least_token_confidence": st.none() | _share,
        "nearest_obstacle": st.none() | _ratio,
        "answerability": st.none() | _share,
        "entry_answers": st.none() | _share,
    },
)


@pytest.mark.slow
@given(
    rows=st.lists(st.tuples(any_signals, _own_signals), min_size=1, max_size=6),
    changes=st.lists(_changes, min_size=1, max_size=4),
)
def test_columns_decide_in_either_order_what_a_replay_decides(rows, changes):
    labelled = [
        LabelledAnswer(f"q{i}", "", signals | own, True, True)
        for i, (signals, own) in enumerate(rows)
    ]
    adaptive = {"scope": Scope.ADAPTIVE, "retrieval_timing": RetrievalTiming.BOUNDARY}
    policies = [make_policy(**adaptive, **each) for each in changes]
    plain = [make_policy(**each) for each in changes]
    table = table_of(labelled)
    for tried in (policies, plain):
        for policy in tried:
            found = table.decide(policy)
            played = [replay(each.signals, policy).outcome for each in labelled]
            assert found.answered.tolist() == [p is Played.ANSWERED for p in played]
            assert found.unknown.tolist() == [p is Played.UNKNOWN for p in played]
        shown, wrong = table.count(tried)
        one_by_one = [table.outcomes(policy) for policy in tried]
        assert shown.tolist() == [int(s.sum()) for s, _ in one_by_one]
        assert wrong.tolist() == [int(w.sum()) for _, w in one_by_one]
