"""Playing gates again on stored signals decides what the gates themselves decide."""

from dataclasses import asdict, replace

from hypothesis import given
from hypothesis import strategies as st

from qa.pipeline.gates import SCORES, THRESHOLDED, Gate
from qa.pipeline.language_model import Confidence, Generation, NoProbes
from qa.pipeline.policy import Policy
from qa.pipeline.replay import Played, flat, replay
from qa.pipeline.values import Outcome, Retrieval
from tests.qa.pipeline.strategies import bound, policies, share
from tests.qa.pipeline.values import (
    GivenModel,
    GivenProbes,
    GivenRetriever,
    make_evidence,
    make_generation,
    make_policy,
    make_retrieval,
    run_pipeline,
)

_pieces = st.lists(
    st.builds(
        lambda distance, confidence, question: make_evidence(
            distance=distance, confidence=confidence, question=question
        ),
        distance=bound,
        confidence=st.one_of(st.just(1.0), st.floats(0.5, 0.99)),
        question=st.sampled_from(("", "What does a card cost?", "Where is the bank?")),
    ),
    max_size=4,
)
_confidences = st.builds(
    Confidence,
    answer=st.none() | share,
    early=st.none() | share,
    joint=st.none() | share,
)
_generations = st.builds(
    make_generation,
    answer=st.sampled_from(
        ("It costs 12 euros.", "It costs 13 euros.", "I do not know.", " ")
    ),
    malformed=st.booleans(),
    can_answer=st.booleans(),
    verdict_probability=st.none() | share,
    cited=st.sampled_from(((1,), (7,), ())),
)


def _outcome(
    evidence: Retrieval,
    generation: Generation,
    policy: Policy,
    confidence: Confidence | None = None,
) -> Outcome:
    *_, last = run_pipeline(
        "What does a card cost?",
        retriever=GivenRetriever(evidence, evidence),
        language_model=lambda: GivenModel(generation),
        probes=lambda _model: GivenProbes(confidence) if confidence else NoProbes(),
        policy=policy,
    )
    assert isinstance(last, Outcome)
    return last


def _flat(outcome: Outcome) -> dict[str, float | None]:
    return flat([asdict(signal) for signal in outcome.signals])


@given(
    pieces=_pieces, generation=_generations, policy=policies(), confidence=_confidences
)
def test_a_replay_of_shadow_signals_is_what_the_enforced_gates_decide(
    pieces: list[object],
    generation: Generation,
    policy: Policy,
    confidence: Confidence,
) -> None:
    found = make_retrieval(*pieces)  # type: ignore[arg-type]
    # Shadow: everything is measured; alpha as it is, for the verbatim tier heeds it.
    shadow = replace(
        policy,
        hard_refusal=False,
        soft_refusal=False,
        support_check=False,
        abstention=False,
        sources_must_agree=False,
    )
    enforced = _outcome(found, generation, policy, confidence)
    measured = _outcome(found, generation, shadow, confidence)
    played = replay(_flat(measured), policy)

    assert (played.outcome is Played.ANSWERED) == enforced.answered
    # What can't be read or is empty is refused in shadow too, before any probe is asked;
    # enforced, it may have been ended before it was written.
    if measured.confidence or not _was_ended(enforced):
        assert played.gate == (None if enforced.answered else enforced.gate)


def _was_ended(outcome: Outcome) -> bool:
    return outcome.generation is not None and outcome.generation.is_stopped


@given(
    pieces=_pieces,
    generation=_generations,
    confidence=_confidences,
    policies=st.tuples(policies(), policies()),
)
def test_what_an_enforced_gate_left_unmeasured_is_never_made_up(
    pieces: list[object],
    generation: Generation,
    confidence: Confidence,
    policies: tuple[Policy, Policy],
) -> None:
    found = make_retrieval(*pieces)  # type: ignore[arg-type]
    before = policies[0]
    # Of what a larger one would have let match, nothing was logged.
    after = replace(policies[1], alpha=min(before.alpha, policies[1].alpha))
    logged = _outcome(found, generation, before, confidence)
    really = _outcome(found, generation, after, confidence)

    played = replay(_flat(logged), after)

    if played.outcome is not Played.UNKNOWN:
        assert (played.outcome is Played.ANSWERED) == really.answered


def test_the_same_words_beyond_alpha_are_no_match_in_a_replay_either() -> None:
    far = make_evidence(distance=1.0, question="What does a card cost?")
    generation = make_generation(can_answer=False, verdict_probability=None)
    shadow = make_policy(alpha=1.0, hard_refusal=False, verbatim_distance=0.35)

    outcome = _outcome(make_retrieval(far), generation, shadow)

    assert not outcome.answered
    assert replay(_flat(outcome), shadow).outcome is not Played.ANSWERED


def test_the_same_words_beyond_a_smaller_alpha_are_no_match_in_a_replay() -> None:
    """Of the question's own words the logged distance is 0, however far the entry is."""
    near = make_evidence("Cards are made of plastic.", distance=0.3)
    far = make_evidence(distance=0.8, question="What does a card cost?")
    logged = make_policy(alpha=0.85, verbatim_distance=0.35)

    outcome = _outcome(make_retrieval(near, far), make_generation(), logged)

    assert outcome.answered
    signals = _flat(outcome)
    assert (signals["question_distance"], signals["question_ratio"]) == (0.0, 0.8)
    assert replay(signals, logged).outcome is Played.ANSWERED
    smaller = replace(logged, alpha=0.7)
    assert replay(signals, smaller).outcome is Played.UNKNOWN
    before = {k: v for k, v in signals.items() if k != "question_ratio"}
    assert replay(before, smaller).outcome is Played.ANSWERED  # as it was logged


def test_of_an_answer_that_was_ended_early_the_rest_is_unknown() -> None:
    found = make_retrieval(make_evidence(distance=0.4))
    unsure = Confidence(answer=0.9, early=0.2, joint=0.9)
    strict = make_policy(abstention=True, min_early_confidence=0.3)
    ended = _flat(_outcome(found, make_generation(), strict, unsure))

    assert replay(ended, strict).gate is Gate.ABSTENTION
    laxer = replace(strict, min_early_confidence=0.1)
    assert replay(ended, laxer).outcome is Played.UNKNOWN
    assert replay(ended, replace(strict, abstention=False)).outcome is Played.UNKNOWN


def test_a_confidence_from_before_there_were_probes_is_unknown() -> None:
    found = make_retrieval(make_evidence(distance=0.4))
    old = {
        name: value
        for name, value in _flat(
            _outcome(found, make_generation(), make_policy())
        ).items()
        if not name.endswith("_confidence")
    }
    enforced = make_policy(abstention=True, min_confidence=0.5)

    assert replay(old, enforced).outcome is Played.UNKNOWN
    assert replay(old, replace(enforced, min_confidence=0.0)).outcome is Played.ANSWERED


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


@given(value=bound, threshold=bound)
def test_a_score_that_holds_is_on_the_trusted_side(
    value: float, threshold: float
) -> None:
    for score in THRESHOLDED.values():
        better = score.oriented(value) > score.oriented(threshold)
        if better:
            assert score.meets(value, threshold)
        elif value != threshold:
            assert not score.meets(value, threshold)
