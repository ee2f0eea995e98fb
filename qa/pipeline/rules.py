"""How a signal is held against a policy: of one question, or of many as columns."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from .policy import Policy

if TYPE_CHECKING:
    from .gates import Gate, Reason

# Of one question a float and a bool, of many a column of each: operators read the same.
Number: TypeAlias = Any
Mask: TypeAlias = Any


class Kind(Enum):
    NUMBER = "number"
    COUNT = "count"
    YES_NO = "yes or no"


class Trust(Enum):
    """Which values of a signal speak for an answer."""

    LOW = "low"
    HIGH = "high"


class Comparison(Enum):
    """How a value is held against a threshold, of numbers and of columns alike."""

    BELOW = "below"
    AT_MOST = "at most"
    AT_LEAST = "at least"
    IS = "exactly"

    def holds(self, value: Number, threshold: float) -> Mask:
        """Tell whether a value, or each of a column, lets the question pass."""
        held: Callable[[Number, float], Mask] = {
            Comparison.BELOW: operator.lt,
            Comparison.AT_MOST: operator.le,
            Comparison.AT_LEAST: operator.ge,
            Comparison.IS: operator.eq,
        }[self]
        return held(value, threshold)


class Missing(Enum):
    """What it means that a signal has no value.

    NO_PROBE: refused unless the policy answers without a probe. Where no probe was asked
    at all, nothing is known; and a threshold of 0 asks for none.
    """

    PASSES = "passes"
    FAILS = "fails"
    NO_PROBE = "no probe"


class Measured(Protocol):
    """Signals that were measured, of one question or as columns; NaN where there is none."""

    def value(self, name: str) -> Number:
        """Return a float, or float64 of shape (questions,)."""

    def is_asked(self, name: str) -> Mask:
        """Tell whether it was measured, also if the result is that it is unknown."""


@dataclass(frozen=True, slots=True)
class SignalRow:
    """One signal: how it is read, and what it is held against, if anything.

    Attributes:
        comparison: How it is held; None where it is recorded alone.
        threshold: The policy's field that it is held against, and `limit` where that is
            no field.
        cap: A field of the policy that the threshold can't exceed.
        switch: The policy's field that enforces it, or else leaves it in shadow; "" is
            always enforced.
        reason: Why a question is refused where it does not hold.
        unless: A signal beside which this one decides nothing.
        is_shown: Whether the stored signal itself says that it was held.
        trust: Which values speak for an answer; None where it ranks none.
        limits: What the threshold may be, both ends included.
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
        """Return the value so that higher is always better."""
        return value if self.trust is Trust.HIGH else -value

    @property
    def rule(self) -> str:
        """The comparison in words; a yes or no needs none."""
        return "" if self.comparison in (None, Comparison.IS) else self.comparison.value

    def in_words(self, value: float, limit: float) -> str:
        """Say where a number is beside its limit: "above the limit of"."""
        name = "minimum" if self.comparison is Comparison.AT_LEAST else "limit"
        where = "at" if value == limit else "above" if value > limit else "below"
        if self.comparison is Comparison.AT_MOST and value <= limit:
            where = "within"
        return f"{where} the {name} of"

    def meets(self, value: float | None, limit: float | None) -> bool | None:
        """Hold a stored value against a stored limit; None where either is missing."""
        if value is None or limit is None or self.comparison is None:
            return None
        return bool(self.comparison.holds(value, limit))

    def limit_in(self, policy: Policy) -> float | None:
        """Return what a policy holds the signal against."""
        if not self.threshold:
            return self.limit
        limit = float(getattr(policy, self.threshold))
        return min(limit, float(getattr(policy, self.cap))) if self.cap else limit

    def is_held(self, policy: Policy) -> bool:
        """Tell whether a policy holds it against anything, if only in shadow."""
        if self.comparison is None:
            return False
        return self.missing is not Missing.NO_PROBE or bool(self.limit_in(policy))

    def is_enforced(self, policy: Policy) -> bool:
        """Tell whether a question may be refused by it."""
        is_on = not self.switch or bool(getattr(policy, self.switch))
        return is_on and self.is_held(policy)

    def is_low(self, name: str, measured: Measured, policy: Policy) -> Mask:
        """Tell where it was measured and does not hold, of numbers and columns alike."""
        limit = self.limit_in(policy)
        if self.comparison is None or limit is None or not self.is_enforced(policy):
            return False
        value = measured.value(name)
        is_low = (value == value) & (self.comparison.holds(value, limit) ^ True)
        return is_low & _is_missing(measured, self.unless) if self.unless else is_low

    def is_lacking(self, name: str, measured: Measured, policy: Policy) -> Mask:
        """Tell where it has no value and has to have one."""
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
        """Tell where it would be held and nobody measured it."""
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
