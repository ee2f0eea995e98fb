"""The gates after the draft: abstention on low confidence, and agreement of sources.

References:
    Huang et al. (2025), "Confidence-Based Response Abstinence: Improving LLM
    Trustworthiness via Activation-Based Uncertainty Estimation".
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from kb.types import Contradiction, Evidence

from .gates import DISAGREEING, EARLY, NOT_COMPARED, Decision, Gate, Reason, judge
from .language_model import Confidence, Generation, Probes
from .policy import Policy
from .soft_gate import build_prompt
from .staleness import current_calibration
from .values import Calibration, Retriever, Trace

_MAY_ANSWER_TOO: Final = 1 / 10
"""The share of a used entry's odds from which another entry may answer as well.

Of 56 pairs that contradict each other 52 reach it; of 20 others that differ in a
quantity, 3 do (docs/explanation/conflicts.md).
"""


def abstain(trace: Trace, *, probes: Probes) -> tuple[Confidence, Decision]:
    """Read the probes' confidence in the draft, and pass or refuse it.

    With `policy.abstention` off everything is measured and nothing refused, except a
    draft that was stopped before its first token: it holds no answer to show.
    """
    generation, policy = trace.generation, trace.policy
    if generation is None:
        raise ValueError(
            "Abstention judges a generated answer, and this trace has none."
        )
    distributions = _distributions(generation)
    measured = {signal.name: signal.value for signal in trace.signals} | distributions
    prompt = build_prompt(trace.question, trace.retrieval)
    confidence = probes.read(prompt, generation, measured)
    calibration = current_calibration(
        policy, trace.retrieval, trace.language_model, probes=probes.fingerprints
    )
    first = None
    if calibration is Calibration.STALE and policy.refuse_when_stale:
        first = Reason.POLICY_STALE
    elif generation.is_stopped:
        first = Reason.LOW_CONFIDENCE
    values = {
        "answer_confidence": confidence.answer,
        EARLY: confidence.early,
        "joint_confidence": confidence.joint,
        **distributions,
        **dict(confidence.shadows),
    }
    decision = judge(Gate.ABSTENTION, values, policy, first=first)
    if generation.is_stopped:  # a draft that never began has no later values to miss
        decision = replace(
            decision,
            signals=tuple(
                replace(each, passed=None) if each.value is None else each
                for each in decision.signals
            ),
        )
    return confidence, decision


def _distributions(generation: Generation) -> dict[str, float | None]:
    """Return the signals from the model's token distributions, which need no probe."""
    least = generation.least_log_probability
    return {
        "least_token_probability": None if least is None else math.exp(least),
        "mean_entropy": generation.entropy,
        "willingness": generation.willingness,
    }


# Stage 9: whether other evidence contradicts the entries that the answer rests on.


def judge_agreement(
    evidence: Sequence[Evidence],
    used: Sequence[int],
    *,
    odds: Mapping[int, float],
    retriever: Retriever,
    policy: Policy,
) -> tuple[tuple[Contradiction, ...], Decision]:
    """Refuse an answer that other evidence contradicts, or pass it with the conflict.

    An unverified entry casts no doubt on a verified one, and an entry that does not
    answer the question casts none on the answer: such a contradiction is only shown.
    The decision also records how many of the entries that may cast doubt, or be
    doubted, the conflict check has not compared since they changed.

    Args:
        evidence: All the evidence found.
        used: Ids of the entries that the answer rests on.
        odds: {entry: log-odds that it answers}, as in `Trace`; an entry without odds
            is taken to answer.

    Returns:
        The contradictions that involve a used entry, including those that cast no
        doubt; and the decision, which counts only those that do.
    """
    pieces = {piece.entry_id: piece for piece in evidence}
    doubting = _doubting(used, pieces, odds)
    # A single piece of evidence has nothing to disagree with.
    is_compared = len(pieces) > 1 and bool(pieces.keys() & set(used))
    found = retriever.contradictions(tuple(pieces)) if is_compared else ()
    shown = tuple(
        each
        for each in found
        if pieces.keys() >= set(each.entries) and set(each.entries) & set(used)
    )
    values: dict[str, float | None] = {
        DISAGREEING: float(sum(each.entries in doubting for each in shown))
    }
    if doubting:
        concerned = tuple({entry_id for pair in doubting for entry_id in pair})
        values[NOT_COMPARED] = float(len(retriever.not_compared(concerned)))
    return shown, judge(Gate.AGREEMENT, values, policy)


def _doubting(
    used: Sequence[int], pieces: Mapping[int, Evidence], odds: Mapping[int, float]
) -> frozenset[tuple[int, int]]:
    """Return each used entry paired, both ways, with each that may cast doubt on it."""
    pairs = [
        (ours, theirs)
        for ours in pieces.keys() & set(used)
        for theirs in pieces
        if ours != theirs
        and (pieces[theirs].is_verified or not pieces[ours].is_verified)
        and _may_answer_too(odds.get(ours), odds.get(theirs))
    ]
    return frozenset(pairs) | {(theirs, ours) for ours, theirs in pairs}


def _may_answer_too(ours: float | None, theirs: float | None) -> bool:
    """Return whether another entry is nearly as likely to answer as a used one.

    Two entries that state different things about one subject ("96 euros a year", "a
    turnover of 50,000 euros") do not both answer the question; an entry that
    contradicts the answer does answer it.
    """
    if ours is None or theirs is None or not math.isfinite(theirs):
        return True  # not scored, or ruled out (-inf), as for stating the opposite
    return theirs >= ours + math.log(_MAY_ANSWER_TOO)
