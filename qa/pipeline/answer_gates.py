"""The gates after the draft: abstention by its confidence, and agreement of its sources.

References:
    Huang et al. (2025), "Confidence-Based Response Abstinence: Improving LLM
    Trustworthiness via Activation-Based Uncertainty Estimation".
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from kb.types import Contradiction, Evidence

from .gates import DISAGREEING, EARLY, Decision, Gate, Reason, judge
from .language_model import Confidence, Generation, Probes
from .policy import Policy
from .soft_gate import build_prompt
from .staleness import current_calibration
from .values import Calibration, Retriever, Trace


def abstain(trace: Trace, *, probes: Probes) -> tuple[Confidence, Decision]:
    """Read how sure the probes are, and pass or refuse.

    With `policy.abstention` off everything is measured and nothing refused, but for an
    answer that was ended before it began: there is none to show.
    """
    generation, policy = trace.generation, trace.policy
    if generation is None:
        msg = "Abstention judges what a language model wrote, and there is nothing."
        raise ValueError(msg)
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
    retriever: Retriever,
    policy: Policy,
) -> tuple[tuple[Contradiction, ...], Decision]:
    """Refuse an answer that other evidence contradicts, or let it pass with the notice.

    What nobody verified puts no verified entry in doubt.

    Args:
        evidence: All that was found.
        used: Ids of the entries that the answer rests on.
    """
    pieces = {piece.entry_id: piece for piece in evidence}
    # A single piece of evidence has nothing to disagree with.
    found = retriever.contradictions(tuple(pieces)) if used and len(pieces) > 1 else ()
    unsettled = tuple(each for each in found if _counts(each, used, pieces))
    values = {DISAGREEING: float(len(unsettled))}
    return unsettled, judge(Gate.AGREEMENT, values, policy)


def _counts(
    each: Contradiction, used: Sequence[int], pieces: dict[int, Evidence]
) -> bool:
    """Tell whether a used entry is contradicted by one that is as verified."""
    one, other = each.entries
    if one not in pieces or other not in pieces:
        return False
    return any(
        ours in used and (pieces[theirs].is_verified or not pieces[ours].is_verified)
        for ours, theirs in ((one, other), (other, one))
    )
