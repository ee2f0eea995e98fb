"""Rules that compare a signal with a policy, for one question or columns of many."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from .policy import Policy

if TYPE_CHECKING:
    from .gates import Gate, Reason

# For one question a float and a bool, for many a column of each: operators treat them
# alike.
Number: TypeAlias = Any
Mask: TypeAlias = Any


class Kind(Enum):
    NUMBER = "number"
    COUNT = "count"
    YES_NO = "yes or no"


class Trust(Enum):
    """Whether low or high values of a signal speak for an answer."""

    LOW = "low"
    HIGH = "high"


class Comparison(Enum):
    """How a value is compared with a threshold, for numbers and columns alike."""

    BELOW = "below"
    AT_MOST = "at most"
    AT_LEAST = "at least"
    IS = "exactly"

    def holds(self, value: Number, threshold: float) -> Mask:
        """Return whether a value, or each value of a column, lets the question pass."""
        held: Callable[[Number, float], Mask] = {
            Comparison.BELOW: operator.lt,
            Comparison.AT_MOST: operator.le,
            Comparison.AT_LEAST: operator.ge,
            Comparison.IS: operator.eq,
        }[self]
        return held(value, threshold)


class Missing(Enum):
    """What a missing value means.

    NO_PROBE: refused unless the policy allows answers without a probe. If no probe was
    asked at all, nothing is known; a threshold of 0 requires no probe.
    """

    PASSES = "passes"
    FAILS = "fails"
    NO_PROBE = "no probe"


class Measured(Protocol):
    """Measured signals of one question, or columns of many; NaN for a missing value."""

    def value(self, name: str) -> Number:
        """Return a float, or float64 of shape (questions,)."""

    def is_asked(self, name: str) -> Mask:
        """Return whether it was measured, even if the result is unknown."""


@dataclass(frozen=True, slots=True)
class SignalRow:
    """One signal, and how it is compared with the policy, if at all.

    Attributes:
        comparison: How it is compared; None if it is only recorded.
        threshold: The policy field that it is compared with; without one, `limit`.
        cap: A policy field that the threshold can't exceed.
        switch: The policy field that enforces it or leaves it in shadow; "" if it is
            always enforced.
        reason: Why a question is refused if the comparison fails.
        unless: A signal in whose presence this one decides nothing.
        is_shown: Whether the stored signal itself has the threshold and the result.
        trust: Which values speak for an answer; None if it does not rank answers.
        limits: The range of the threshold, both ends included.
    """

    gate: "Gate"
    label: str
    kind: Kind = Kind.NUMBER
    comparison: Comparison | None = None
    threshold: str = ""
    limit: float | None = None
    cap: str = ""
    switch: str = ""
    reason: "Reason | None" = None
    missing: Missing = Missing.PASSES
    unless: str = ""
    is_shown: bool = True
    trust: Trust | None = None
    limits: tuple[float, float] = (0.0, 1.0)

    def oriented(self, value: float) -> float:
        """Return the value such that higher is always better."""
        return value if self.trust is Trust.HIGH else -value

    @property
    def rule(self) -> str:
        """The comparison in words; "" for a yes or no, and without a comparison."""
        return "" if self.comparison in (None, Comparison.IS) else self.comparison.value

    def in_words(self, value: float, limit: float) -> str:
        """Describe where a number is relative to its limit: "above the limit of"."""
        name = "minimum" if self.comparison is Comparison.AT_LEAST else "limit"
        where = "at" if value == limit else "above" if value > limit else "below"
        if self.comparison is Comparison.AT_MOST and value <= limit:
            where = "within"
        return f"{where} the {name} of"

    def meets(self, value: float | None, limit: float | None) -> bool | None:
        """Compare a stored value with a stored limit; None if either is missing."""
        if value is None or limit is None or self.comparison is None:
            return None
        return bool(self.comparison.holds(value, limit))

    def limit_in(self, policy: Policy) -> float | None:
        """Return the policy's limit for the signal."""
        if not self.threshold:
            return self.limit
        limit = float(getattr(policy, self.threshold))
        return min(limit, float(getattr(policy, self.cap))) if self.cap else limit

    def is_held(self, policy: Policy) -> bool:
        """Return whether a policy sets a limit for the signal, if only in shadow."""
        if self.comparison is None:
            return False
        return self.missing is not Missing.NO_PROBE or bool(self.limit_in(policy))

    def is_enforced(self, policy: Policy) -> bool:
        """Return whether the signal can refuse a question under this policy."""
        is_on = not self.switch or bool(getattr(policy, self.switch))
        return is_on and self.is_held(policy)

    def is_low(self, name: str, measured: Measured, policy: Policy) -> Mask:
        """Return where it was measured and fails, for numbers and columns alike."""
        limit = self.limit_in(policy)
        if self.comparison is None or limit is None or not self.is_enforced(policy):
            return False
        value = measured.value(name)
        is_low = (value == value) & (self.comparison.holds(value, limit) ^ True)
        return is_low & _is_missing(measured, self.unless) if self.unless else is_low

    def is_lacking(self, name: str, measured: Measured, policy: Policy) -> Mask:
        """Return where a required value is missing."""
        if self.missing is Missing.PASSES or not self.is_enforced(policy):
            return False
        is_lacking = _is_missing(measured, name)
        if self.missing is Missing.NO_PROBE:
            return (
                is_lacking & measured.is_asked(name) & (not policy.answer_without_probe)
            )
        return (
            is_lacking & _is_missing(measured, self.unless)
            if self.unless
            else is_lacking
        )

    def fails(self, name: str, measured: Measured, policy: Policy) -> Mask:
        return self.is_low(name, measured, policy) | self.is_lacking(
            name, measured, policy
        )

    def is_unknown(self, name: str, measured: Measured, policy: Policy) -> Mask:
        """Return where the signal would be enforced but was never measured."""
        if self.missing is not Missing.NO_PROBE or not self.is_enforced(policy):
            return False
        return measured.is_asked(name) ^ True


def _is_missing(measured: Measured, name: str) -> Mask:
    value = measured.value(name)
    return value != value


@dataclass(frozen=True, slots=True)
class Values:
    signals: Mapping[str, float | None]

    def value(self, name: str) -> float:
        found = self.signals.get(name)
        return float("nan") if found is None else found

    def is_asked(self, name: str) -> bool:
        return name in self.signals
