"""Gates in shadow: what they measured, and whether they would have refused."""

from collections.abc import Mapping
from dataclasses import replace

from qa.models import Answer
from qa.pipeline.agree import DISAGREEING
from qa.pipeline.gates import Gate
from qa.pipeline.policy import Policy
from qa.pipeline.replay import flat, replay
from qa.pipeline.scores import CONFIDENCES

# The policy's switches of a gate, with the signals that each one judges by.
_SWITCHES: Mapping[Gate, Mapping[str, tuple[str, ...]]] = {
    Gate.HARD_REFUSAL: {"hard_refusal": ("distance_over_confidence",)},
    Gate.SOFT_REFUSAL: {
        "soft_refusal": ("verdict", "verdict_probability", "not_a_refusal_in_prose"),
        "support_check": ("citations_verified", "unsupported_facts"),
    },
    Gate.ABSTENTION: {"abstention": tuple(CONFIDENCES)},
    Gate.AGREEMENT: {"sources_must_agree": (DISAGREEING,)},
}
# Recorded beside a probability, the model's word decides nothing.
_BESIDE = {"verdict": "verdict_probability"}


def shadow_verdict(gate: Gate, answer: Answer) -> bool | None:
    """Tell whether the gate would have let the question pass, had it been enforced.

    None where it was enforced, or is not all in shadow and its shadow would not refuse.
    """
    if answer.policy is None:
        return None
    policy = answer.policy.as_value()
    switches = _SWITCHES.get(gate, {})
    off = [switch for switch in switches if not getattr(policy, switch)]
    if not off:
        return None
    refused = replay(flat(answer.signals), _alone(gate, policy)).gate is gate
    if refused:
        return False
    return True if len(off) == len(switches) else None


def in_shadow(answer: Answer) -> frozenset[str]:
    """Return the names of the signals that a gate in shadow would have judged by."""
    if answer.policy is None:
        return frozenset()
    names = {
        name
        for switches in _SWITCHES.values()
        for switch, signals in switches.items()
        if not getattr(answer.policy, switch)
        for name in signals
        # A least confidence of 0 is none.
        if name not in CONFIDENCES or getattr(answer.policy, CONFIDENCES[name]) > 0
    }
    measured = flat(answer.signals)
    return frozenset(
        name
        for name in names
        if measured.get(name) is not None
        and measured.get(_BESIDE.get(name, "")) is None
    )


def _alone(gate: Gate, policy: Policy) -> Policy:
    """Return the policy with this gate enforced and the others in shadow."""
    is_soft = gate is Gate.SOFT_REFUSAL
    return replace(
        policy,
        hard_refusal=gate is Gate.HARD_REFUSAL,
        soft_refusal=is_soft,
        support_check=is_soft,
        abstention=gate is Gate.ABSTENTION,
        sources_must_agree=gate is Gate.AGREEMENT,
    )
