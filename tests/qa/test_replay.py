"""Playing gates again on stored signals decides what the gates themselves decide."""

from dataclasses import asdict, replace

from hypothesis import given
from hypothesis import strategies as st

from qa import pipeline
from qa.pipeline.replay import Played, flat, replay
from qa.pipeline.scores import SCORES
from qa.pipeline.types import Gate, Generation, Outcome, Policy, Retrieval
from tests.qa.values import (
    GivenModel,
    GivenRetriever,
    make_evidence,
    make_generation,
    make_policy,
    make_retrieval,
)

_share = st.floats(0, 1, allow_nan=False)
_bound = st.floats(0, 2, allow_nan=False)
_pieces = st.lists(
    st.builds(
        lambda distance, confidence, question: make_evidence(
            distance=distance, confidence=confidence, question=question
        ),
        distance=_bound,
        confidence=st.one_of(st.just(1.0), st.floats(0.5, 0.99)),
        question=st.sampled_from(("", "What does a card cost?", "Where is the bank?")),
    ),
    max_size=4,
)
_policies = st.builds(
    make_policy,
    alpha=_bound,
    alpha_unverified=_bound,
    min_verdict=_share,
    hard_refusal=st.booleans(),
    soft_refusal=st.booleans(),
    support_check=st.booleans(),
)
_generations = st.builds(
    make_generation,
    answer=st.sampled_from(
        ("It costs 12 euros.", "It costs 13 euros.", "I do not know.", " ")
    ),
    malformed=st.booleans(),
    can_answer=st.booleans(),
    verdict_probability=st.none() | _share,
    cited=st.sampled_from(((1,), (7,), ())),
)


def _outcome(evidence: Retrieval, generation: Generation, policy: Policy) -> Outcome:
    *_, last = pipeline.answer(
        "What does a card cost?",
        retriever=GivenRetriever(evidence, evidence),
        language_model=lambda: GivenModel(generation),
        policy=policy,
    )
    assert isinstance(last, Outcome)
    return last


def _flat(outcome: Outcome) -> dict[str, float | None]:
    return flat([asdict(signal) for signal in outcome.signals])


@given(pieces=_pieces, generation=_generations, policy=_policies)
def test_a_replay_of_shadow_signals_is_what_the_enforced_gates_decide(
    pieces: list[object], generation: Generation, policy: Policy
) -> None:
    found = make_retrieval(*pieces)  # type: ignore[arg-type]
    # Shadow: everything is measured; alpha as it is, for the verbatim tier heeds it.
    shadow = replace(
        policy, hard_refusal=False, soft_refusal=False, support_check=False
    )
    enforced = _outcome(found, generation, policy)
    played = replay(_flat(_outcome(found, generation, shadow)), policy)

    assert (played.outcome is Played.ANSWERED) == enforced.answered
    assert played.gate == (None if enforced.answered else enforced.gate)


def test_what_hard_refusal_kept_from_the_model_is_unknown_under_a_wider_alpha() -> None:
    found = make_retrieval(make_evidence(distance=0.9))
    refused = _outcome(found, make_generation(), make_policy(alpha=0.85))

    assert refused.gate is Gate.HARD_REFUSAL
    assert replay(_flat(refused), make_policy(alpha=0.95)).outcome is Played.UNKNOWN
    assert replay(_flat(refused), make_policy(alpha=0.8)).gate is Gate.HARD_REFUSAL


def test_signals_from_before_the_bounds_were_told_apart_are_replayed() -> None:
    old = {"distance_over_confidence": 0.9}
    assert replay(old, make_policy(alpha=0.85)).gate is Gate.HARD_REFUSAL


def test_every_score_that_has_a_threshold_names_a_field_of_the_policy() -> None:
    named = {score.threshold for score in SCORES.values() if score.threshold}
    assert named <= set(Policy.__dataclass_fields__)


@given(value=_bound, threshold=_bound)
def test_a_score_that_holds_is_on_the_trusted_side(
    value: float, threshold: float
) -> None:
    for score in SCORES.values():
        better = score.oriented(value) > score.oriented(threshold)
        if better:
            assert score.holds(value, threshold)
        elif value != threshold:
            assert not score.holds(value, threshold)
