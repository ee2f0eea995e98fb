"""Stage 7: refuse what the model itself declined, and what its evidence does not carry."""

from .calibration import calibration_of
from .evidence import Retrieval
from .gates import (
    Decision,
    Gate,
    Reason,
    Signal,
)
from .generation import Generation
from .outcome import Calibration, Support
from .policy import Policy
from .refusal_detector import is_refusal


def judge_generation(
    retrieval: Retrieval,
    generation: Generation,
    support: Support,
    *,
    policy: Policy,
    language_model: str,
) -> Decision:
    """Pass, or refuse with the first reason that holds.

    With `policy.soft_refusal` off the model's own verdict is recorded and not enforced,
    with `policy.support_check` off what its evidence does not carry. An answer that
    can't be read or is empty is refused all the same.
    """
    calibration = calibration_of(policy, retrieval, language_model)
    is_stale = calibration is Calibration.STALE and policy.refuse_when_stale
    doubts = (
        (is_stale, Reason.POLICY_STALE),
        (generation.malformed, Reason.MALFORMED_OUTPUT),
        (not generation.answer.strip(), Reason.MODEL_DECLINED),
        (policy.soft_refusal and _declined(generation, policy), Reason.MODEL_DECLINED),
        (policy.support_check and not _is_supported(support), Reason.UNSUPPORTED),
    )
    reason = next((reason for holds, reason in doubts if holds), None)
    signals = _signals(generation, support, policy)
    return Decision(Gate.SOFT_REFUSAL, reason, reason, signals)


def _declined(generation: Generation, policy: Policy) -> bool:
    return not _is_willing(generation, policy) or is_refusal(generation.answer)


def _is_supported(support: Support) -> bool:
    return bool(support.citations) and not support.unsupported


def _is_willing(generation: Generation, policy: Policy) -> bool:
    """Hold the verdict's probability against the policy; without one, take its word."""
    if generation.deciding_verdict is None:
        return generation.can_answer
    return generation.deciding_verdict >= policy.min_verdict


def _signals(
    generation: Generation, support: Support, policy: Policy
) -> tuple[Signal, ...]:
    gate = Gate.SOFT_REFUSAL
    probability = generation.deciding_verdict
    is_willing = _is_willing(generation, policy)
    speaks = not is_refusal(generation.answer)
    held, unsupported = len(support.citations), len(support.unsupported)

    def judged(passed: bool, *, applies: bool = True) -> bool | None:
        return passed if policy.soft_refusal and applies else None

    def checked(passed: bool) -> bool | None:
        return passed if policy.support_check else None

    word = judged(generation.can_answer, applies=probability is None)
    likely = judged(is_willing, applies=probability is not None)
    return (
        Signal(
            gate,
            "readable",
            float(not generation.malformed),
            1.0,
            not generation.malformed,
        ),
        # An empty answer is refused whatever is in shadow.
        Signal(
            gate, "answer_characters", float(len(generation.answer.strip())), None, None
        ),
        Signal(gate, "verdict", float(generation.can_answer), 1.0, word),
        Signal(gate, "verdict_probability", probability, policy.min_verdict, likely),
        *_before_debiasing(generation),
        Signal(gate, "not_a_refusal_in_prose", float(speaks), 1.0, judged(speaks)),
        Signal(gate, "citations_verified", float(held), 1.0, checked(held > 0)),
        Signal(gate, "citations_dropped", float(support.dropped), None, None),
        Signal(
            gate, "unsupported_facts", float(unsupported), 0.0, checked(not unsupported)
        ),
        Signal(gate, "answer_in_evidence", support.answer_overlap, None, None),
        Signal(gate, "question_in_evidence", support.question_overlap, None, None),
        Signal(gate, "log_probability", generation.log_probability, None, None),
    )


def _before_debiasing(generation: Generation) -> tuple[Signal, ...]:
    """Return what stood in the deciding verdict's place, where past ones corrected it."""
    debiased = generation.debiased
    if debiased is None:
        return ()
    return tuple(
        Signal(Gate.SOFT_REFUSAL, name, value, None, None)
        for name, value in (
            ("debiased_verdict", debiased.probability),
            ("uncorrected_verdict", debiased.uncorrected),
            ("own_verdict", generation.verdict_probability),
        )
    )
