"""Stage 8: refuse what the language model's own activations speak against.

References:
    Huang et al. (2025), "Confidence-Based Response Abstinence: Improving LLM
    Trustworthiness via Activation-Based Uncertainty Estimation".
"""

import math
from dataclasses import replace

from .gates import EARLY, Decision, Gate, Reason, judge
from .language_model import Confidence, Generation, Probes
from .soft_gate import build_prompt
from .staleness import current_calibration
from .values import Calibration, Trace


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
