"""The gates after the draft: abstention by its confidence, and agreement of its sources.

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
"""Of a used entry's odds. Of pairs that contradict each other 52 of 56 have it, of others
that differ in a quantity 3 of 20 (docs/explanation/conflicts.md)."""


def abstain(trace: Trace, *, probes: Probes) -> tuple[Confidence, Decision]:
    """Read how sure the probes are, and pass or refuse.

    With `policy.abstention` off everything is measured and nothing refused, but for an
    answer that was ended before it began: there is none to show.
    """
    generation, policy = trace.generation, trace.policy
    if generation is None:
        raise ValueError(
            "Abstention judges what a language model wrote, and there is nothing."
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
    if generation.is_stopped:  # of what never began, later numbers can't be missed
        decision = replace(
            decision,
            signals=tuple(
                replace(each, passed=None) if each.value is None else each
                for each in decision.signals
            ),
        )
    return confidence, decision


def _distributions(generation: Generation) -> dict[str, float | None]:
    """Return what the model's own distributions say, which no probe has to read."""
    least = generation.least_log_probability
    return {
        "least_token_probability": None if least is None else math.exp(least),
        "mean_entropy": generation.entropy,
        "willingness": generation.willingness,
    }


# Stage 9: whether the sources agree on what the answer rests on.


def judge_agreement(
    evidence: Sequence[Evidence],
    used: Sequence[int],
    *,
    odds: Mapping[int, float],
    retriever: Retriever,
    policy: Policy,
) -> tuple[tuple[Contradiction, ...], Decision]:
    """Refuse an answer that other evidence contradicts, or let it pass with the notice.

    What nobody verified puts no verified entry in doubt, and what does not answer the
    question puts no answer in doubt: it is shown beside it. Whether the conflict check
    has read all that could contradict the answer is recorded.

    Args:
        evidence: All that was found.
        used: Ids of the entries that the answer rests on.
        odds: {entry: log-odds that it answers}, as in `Trace`; what has none counts.

    Returns:
        The contradictions of what is used, also those that put nothing in doubt; and the
        decision, by the others alone.
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
    """Return, both ways around, a used entry with each other that may put it in doubt."""
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
    """Tell whether another entry is not much less likely to answer than one that is used.

    Of two that say different things about one subject ("96 euros a year", "a turnover of
    50,000 euros") only one answers; what contradicts an answer answers as well.
    """
    if ours is None or theirs is None or not math.isfinite(theirs):
        return True  # not read, or as likely but the opposite of what is asked for
    return theirs >= ours + math.log(_MAY_ANSWER_TOO)
