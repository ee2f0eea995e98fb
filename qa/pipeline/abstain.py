"""Stage 8: refuse what the language model's own activations speak against.

References:
    Huang et al. (2025), "Confidence-Based Response Abstinence: Improving LLM
    Trustworthiness via Activation-Based Uncertainty Estimation".
"""

import math
from collections.abc import Mapping

from .gates import CONFIDENCES, Decision, Gate, Reason, Signal
from .generate import prompt_of
from .language_model import Confidence, Generation, Probes
from .policy import Policy
from .staleness import calibration_of
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
    prompt = prompt_of(trace.question, trace.retrieval)
    confidence = probes.read(prompt, generation, measured)
    values = _values(confidence)
    calibration = calibration_of(
        policy, trace.retrieval, trace.language_model, probes=probes.fingerprints
    )
    is_stale = calibration is Calibration.STALE and policy.refuse_when_stale
    doubts = (
        (is_stale, Reason.POLICY_STALE),
        (generation.is_stopped or _is_low(values, policy), Reason.LOW_CONFIDENCE),
        (_is_wanting(values, policy), Reason.NO_PROBE),
    )
    reason = next((reason for holds, reason in doubts if holds), None)
    signals = (
        *_signals(values, generation, policy),
        *(_recorded(name, value) for name, value in distributions.items()),
        *(_recorded(name, value) for name, value in confidence.shadows),
    )
    return confidence, Decision(Gate.ABSTENTION, reason, reason, signals)


def _values(confidence: Confidence) -> dict[str, float | None]:
    return {
        "answer_confidence": confidence.answer,
        "early_confidence": confidence.early,
        "joint_confidence": confidence.joint,
    }


def _distributions(generation: Generation) -> dict[str, float | None]:
    """Return what the model's own distributions say, which no probe has to read."""
    least = generation.least_log_probability
    return {
        "least_token_probability": None if least is None else math.exp(least),
        "mean_entropy": generation.entropy,
        "willingness": generation.willingness,
    }


def _least(name: str, policy: Policy) -> float:
    """Return what `name` is held against; 0 where that is nothing."""
    return float(getattr(policy, CONFIDENCES[name])) if policy.abstention else 0.0


def _is_low(values: Mapping[str, float | None], policy: Policy) -> bool:
    return any(
        value is not None and value < _least(name, policy)
        for name, value in values.items()
    )


def _is_wanting(values: Mapping[str, float | None], policy: Policy) -> bool:
    return not policy.answer_without_probe and any(
        value is None and _least(name, policy) > 0 for name, value in values.items()
    )


def _signals(
    values: Mapping[str, float | None], generation: Generation, policy: Policy
) -> tuple[Signal, ...]:
    return tuple(
        Signal(
            Gate.ABSTENTION,
            name,
            value,
            getattr(policy, CONFIDENCES[name]),
            _passed(value, _least(name, policy), generation, policy),
        )
        for name, value in values.items()
    )


def _passed(
    value: float | None, least: float, generation: Generation, policy: Policy
) -> bool | None:
    if not least:
        return None
    if value is not None:
        return value >= least
    # Of an answer that never began, the later numbers can't be missed.
    return None if generation.is_stopped or policy.answer_without_probe else False


def _recorded(name: str, value: float | None) -> Signal:
    return Signal(Gate.ABSTENTION, name, value, None, None)
