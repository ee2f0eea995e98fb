"""The gates, what they measure and what one of them decided."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum


class Gate(StrEnum):
    """Where a question was decided, in the order in which the gates stand.

    BOUNDARY and VERBATIM answer, or let the question go on. Only what was watched while
    it was written can be refused at BOUNDARY.
    """

    BOUNDARY = "boundary"
    VERBATIM = "verbatim"
    HARD_REFUSAL = "hard_refusal"
    SOFT_REFUSAL = "soft_refusal"
    ABSTENTION = "abstention"
    AGREEMENT = "agreement"


class Reason(StrEnum):
    """Why a question was refused; each is true on its own and none stands for another."""

    NOTHING_KNOWN = "nothing_known"
    TOO_FAR = "too_far"
    UNVERIFIED_ONLY = "unverified_only"
    EXPIRED_ONLY = "expired_only"
    NOT_ENTITLED = "not_entitled"
    MODEL_DECLINED = "model_declined"
    MALFORMED_OUTPUT = "malformed_output"
    UNSUPPORTED = "unsupported"
    LOW_CONFIDENCE = "low_confidence"
    NO_PROBE = "no_probe"
    SOURCES_DISAGREE = "sources_disagree"
    POLICY_STALE = "policy_stale"


@dataclass(frozen=True, slots=True)
class Signal:
    """One measured number beside the threshold that it was held against.

    `passed` is None where the signal is recorded and not enforced.
    """

    gate: Gate
    name: str
    value: float | None
    threshold: float | None
    passed: bool | None


@dataclass(frozen=True, slots=True)
class Decision:
    """What one gate decided; `reason` is None where it let the question pass.

    Attributes:
        gate: The gate that decided.
        reason: The true reason of a refusal.
        shown_reason: What the asker may be told; never says that knowledge exists
            which they may not see, unless the policy allows it.
        signals: What was measured; holds nothing that the asker may not see.
    """

    gate: Gate
    reason: Reason | None
    shown_reason: Reason | None
    signals: tuple[Signal, ...]

    @property
    def refused(self) -> bool:
        """Whether the question ends here."""
        return self.reason is not None


# The signals that rank answers: which way each one points, and which gate holds it.


class Trust(Enum):
    """Which values of a signal speak for an answer."""

    LOW = "low"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class Score:
    """How a signal is read.

    Attributes:
        gate: The gate that measures it.
        trust: Which values speak for the answer.
        threshold: The policy's field that it is held against; "" for none, in which
            case it is recorded and can be evaluated, but no policy enforces it.
        limits: What the threshold may be, both ends included.
    """

    gate: Gate
    trust: Trust
    threshold: str = ""
    limits: tuple[float, float] = (0.0, 1.0)

    def oriented(self, value: float) -> float:
        """Return the value so that higher is always better."""
        return value if self.trust is Trust.HIGH else -value

    def holds(self, value: float, threshold: float) -> bool:
        """Tell whether the gate lets `value` pass: L2R's strict <, and >= otherwise."""
        return value < threshold if self.trust is Trust.LOW else value >= threshold


# By the name under which answers store them.
SCORES: Mapping[str, Score] = {
    "distance_over_confidence": Score(Gate.HARD_REFUSAL, Trust.LOW),
    "verified_ratio": Score(Gate.HARD_REFUSAL, Trust.LOW, "alpha", (0.0, 2.0)),
    "unverified_ratio": Score(
        Gate.HARD_REFUSAL, Trust.LOW, "alpha_unverified", (0.0, 2.0)
    ),
    "nearest_distance": Score(Gate.HARD_REFUSAL, Trust.LOW),
    "verdict_probability": Score(Gate.SOFT_REFUSAL, Trust.HIGH, "min_verdict"),
    "answer_in_evidence": Score(Gate.SOFT_REFUSAL, Trust.HIGH),
    "question_in_evidence": Score(Gate.SOFT_REFUSAL, Trust.HIGH),
    "log_probability": Score(Gate.SOFT_REFUSAL, Trust.HIGH),
    "least_token_probability": Score(Gate.ABSTENTION, Trust.HIGH),
    "mean_entropy": Score(Gate.ABSTENTION, Trust.LOW),
    "willingness": Score(Gate.ABSTENTION, Trust.HIGH),
    "answer_confidence": Score(Gate.ABSTENTION, Trust.HIGH, "min_confidence"),
    "early_confidence": Score(Gate.ABSTENTION, Trust.HIGH, "min_early_confidence"),
    "joint_confidence": Score(Gate.ABSTENTION, Trust.HIGH, "min_joint_confidence"),
}
THRESHOLDED: Mapping[str, Score] = {
    name: score for name, score in SCORES.items() if score.threshold
}
# What the probes in force say: held against a least confidence each, where that is not 0.
CONFIDENCES: Mapping[str, str] = {
    name: score.threshold
    for name, score in THRESHOLDED.items()
    if score.gate is Gate.ABSTENTION
}
EARLY = "early_confidence"
