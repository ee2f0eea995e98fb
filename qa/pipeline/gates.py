"""The gates, what they measure and what one of them decided."""

from dataclasses import dataclass
from enum import StrEnum


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
