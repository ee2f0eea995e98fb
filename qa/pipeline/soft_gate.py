"""Stage 7: refuse what the model itself declined, and what its evidence does not carry."""

from .calibration import calibration_of
from .refusal_detector import is_refusal
from .types import (
    Calibration,
    Decision,
    Gate,
    Generation,
    Policy,
    Reason,
    Retrieval,
    Signal,
    Support,
)


def judge_generation(
    retrieval: Retrieval,
    generation: Generation,
    support: Support,
    *,
    policy: Policy,
    language_model: str,
) -> Decision:
    """Pass, or refuse with the first reason that holds.

    With `policy.soft_refusal` off the model's own verdict is recorded and not enforced;
    an answer that can't be read, is empty or has no support is refused all the same.
    """
    calibration = calibration_of(policy, retrieval.embedder, language_model)
    is_stale = calibration is Calibration.STALE and policy.refuse_when_stale
    doubts = (
        (is_stale, Reason.POLICY_STALE),
        (generation.malformed, Reason.MALFORMED_OUTPUT),
        (not generation.answer.strip(), Reason.MODEL_DECLINED),
        (policy.soft_refusal and _declined(generation, policy), Reason.MODEL_DECLINED),
        (not support.citations or bool(support.unsupported), Reason.UNSUPPORTED),
    )
    reason = next((reason for holds, reason in doubts if holds), None)
    signals = _signals(generation, support, policy)
    return Decision(Gate.SOFT_REFUSAL, reason, reason, signals)


def _declined(generation: Generation, policy: Policy) -> bool:
    probability = generation.verdict_probability
    return (
        not generation.can_answer
        or (probability is not None and probability < policy.min_verdict)
        or is_refusal(generation.answer)
    )


def _signals(
    generation: Generation, support: Support, policy: Policy
) -> tuple[Signal, ...]:
    gate = Gate.SOFT_REFUSAL
    enforced = policy.soft_refusal
    probability = generation.verdict_probability
    speaks = not is_refusal(generation.answer)
    is_likely = None if probability is None else probability >= policy.min_verdict
    held = len(support.citations)
    return (
        Signal(
            gate,
            "readable",
            float(not generation.malformed),
            1.0,
            not generation.malformed,
        ),
        Signal(
            gate,
            "verdict",
            float(generation.can_answer),
            1.0,
            generation.can_answer if enforced else None,
        ),
        Signal(
            gate,
            "verdict_probability",
            probability,
            policy.min_verdict,
            is_likely if enforced else None,
        ),
        Signal(
            gate,
            "not_a_refusal_in_prose",
            float(speaks),
            1.0,
            speaks if enforced else None,
        ),
        Signal(gate, "citations_verified", float(held), 1.0, held > 0),
        Signal(gate, "citations_dropped", float(support.dropped), None, None),
        Signal(
            gate,
            "unsupported_facts",
            float(len(support.unsupported)),
            0.0,
            not support.unsupported,
        ),
        Signal(gate, "words_in_evidence", support.overlap, None, None),
        Signal(gate, "log_probability", generation.log_probability, None, None),
    )
