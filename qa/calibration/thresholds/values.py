"""The results of a calibration, certified or not, and binomial bounds on a risk."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincinv

from qa.pipeline.policy import Policy


class Method(StrEnum):
    LEARN_THEN_TEST = "learn_then_test"
    GUARANTEED_RISK = "selection_with_guaranteed_risk"


@dataclass(frozen=True, slots=True)
class Tested:
    """The test of thresholds, by policy field, on the test part of the answers.

    They passed if both the bound over questions and the one over groups are within the
    promise. `groups_needed` groups like these would satisfy the latter; None if no
    number would.
    """

    thresholds: Mapping[str, float]
    labelled: int
    shown: int
    wrong: int
    bound: float
    groups: int
    group_bound: float
    groups_needed: int | None
    passed: bool

    @property
    def coverage(self) -> float:
        return self.shown / self.labelled if self.labelled else 0.0

    @property
    def risk(self) -> float | None:
        return self.wrong / self.shown if self.shown else None

    @property
    def is_grouped(self) -> bool:
        return self.groups < self.labelled


@dataclass(frozen=True, slots=True)
class Certified:
    """Thresholds at which at most epsilon of the shown answers are wrong.

    This holds with probability 1 - delta over the sampling of the labelled answers,
    individually or in whole groups, for questions sampled likewise. `learnt` answers
    ordered the candidates and are not part of the test.
    """

    policy: Policy
    method: Method
    signals: tuple[str, ...]
    epsilon: float
    delta: float
    learnt: int
    tested: Tested
    sequence: tuple[Tested, ...]
    unmeasured: int
    warnings: tuple[str, ...]

    @property
    def thresholds(self) -> Mapping[str, float]:
        return self.tested.thresholds


@dataclass(frozen=True, slots=True)
class NotCertified:
    """The finding that no thresholds earn the promise, with the reasons.

    `needed` shown answers without any error, from as many groups, could earn it. `best`
    was tested. `best_possible` is chosen with hindsight to show how far off the promise
    is, and would need `needed_at_best_risk` shown answers, None if no number would do.
    """

    method: Method
    signals: tuple[str, ...]
    epsilon: float
    delta: float
    labelled: int
    learnt: int
    needed: int
    best: Tested | None
    best_possible: Tested | None
    needed_at_best_risk: int | None
    sequence: tuple[Tested, ...]
    unmeasured: int
    warnings: tuple[str, ...]

    @property
    def explanation(self) -> str:
        promise = (
            f"at most {self.epsilon:.1%} wrong with {1 - self.delta:.0%} certainty"
        )
        tested = self.labelled - self.learnt
        best = self.best_possible
        lines = [
            f"No thresholds earn {promise}.",
            f"There are {self.labelled} labelled answers, {tested} of them to test on; "
            f"even without a single error it takes {self.needed} shown ones, from as "
            "many groups.",
        ]
        if best is None or not best.shown:
            return " ".join((*lines, "None of them is shown by any thresholds."))
        lines.append(
            f"The best bound reached is {best.bound:.1%}, at a coverage of "
            f"{best.coverage:.1%} ({best.wrong} wrong of {best.shown} shown)."
        )
        if best.is_grouped:
            lines.append(
                f"Over the {best.groups} groups, whose answers may depend on each "
                f"other, it is {best.group_bound:.1%}."
            )
        if best.passed:
            lines.append(
                "That would be enough, but it is known with hindsight only: the order "
                "of testing is fixed in advance, and an earlier test failed. More "
                "labels make such bad luck rare."
            )
        elif best.bound <= self.epsilon:
            lines += ["The bound over questions holds.", *_failing(best)]
        elif self.needed_at_best_risk is None:
            lines.append(
                f"Even there {best.risk:.1%} are wrong: more labels alone will not "
                "help, but better signals or a better model would."
            )
        else:
            lines.append(
                f"If that risk is true, about {self.needed_at_best_risk} shown ones "
                "would earn it."
            )
            if best.is_grouped:
                lines.append("The bound over questions fails.")
            if best.group_bound > self.epsilon:
                lines += _failing(best)
        return " ".join(lines)


def _failing(best: Tested) -> tuple[str, ...]:
    """Describe how the bound over groups fails and how many groups would satisfy it."""
    if not best.is_grouped:
        return ()
    if best.groups_needed is None:
        said = "more groups like these would not help."
    else:
        more = best.groups_needed - best.groups
        said = f"about {more} more groups like these to test on would earn it."
    return (f"The bound over groups fails: {said}",)


@dataclass(frozen=True, slots=True)
class CostChoice:
    """The thresholds of the lowest mean cost, without a guarantee.

    `low` to `high` is the 95 % interval of the mean cost over resampled groups;
    `optimism` is the bootstrap estimate of how much lower the cost looks because the
    thresholds were chosen on the same answers.
    """

    policy: Policy
    signals: tuple[str, ...]
    wrong_cost: float
    refused_cost: float
    thresholds: Mapping[str, float]
    cost: float
    low: float
    high: float
    optimism: float
    labelled: int
    shown: int
    wrong: int
    refused_right: int
    unmeasured: int


FloatArray = NDArray[np.float64]


def p_values(wrong: ArrayLike, shown: ArrayLike, epsilon: float) -> FloatArray:
    """Return P(Bin(shown, epsilon) <= wrong), the p-value of "risk above epsilon".

    Fractional counts are interpolated by the incomplete beta function; 1 if none is
    shown.
    """
    k, n = np.asarray(wrong, np.float64), np.asarray(shown, np.float64)
    is_informative = k < n
    rest = np.where(is_informative, n - k, 1.0)
    below = betainc(rest, np.where(is_informative, k, 0.0) + 1, 1 - epsilon)
    return np.where(is_informative, below, 1.0)


def upper_bounds(wrong: ArrayLike, shown: ArrayLike, delta: float) -> FloatArray:
    """Return the Clopper-Pearson upper bounds on the risk at confidence 1 - delta each.

    A bound is at most epsilon exactly where `p_values(..., epsilon)` is at most delta;
    it is 1 if none is shown.
    """
    k, n = np.asarray(wrong, np.float64), np.asarray(shown, np.float64)
    is_informative = k < n
    rest = np.where(is_informative, n - k, 1.0)
    bound = betaincinv(np.where(is_informative, k, 0.0) + 1, rest, 1 - delta)
    return np.where(is_informative, bound, 1.0)


def p_value(wrong: float, shown: float, epsilon: float) -> float:
    return float(p_values(wrong, shown, epsilon))


def upper_bound(wrong: float, shown: float, delta: float) -> float:
    return float(upper_bounds(wrong, shown, delta))


def least_shown(epsilon: float, delta: float) -> int:
    """Return the smallest n with (1 - epsilon)^n <= delta: 59 for 5 % at 95 %."""
    return math.ceil(math.log(delta) / math.log1p(-epsilon))


def shown_needed(risk: float, epsilon: float, delta: float) -> int | None:
    """Return how many shown answers would earn the promise at this risk.

    None if no number would.
    """
    if risk >= epsilon:
        return None
    high = least_shown(epsilon, delta)
    while p_value(risk * high, high, epsilon) > delta:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if p_value(risk * middle, middle, epsilon) <= delta:
            high = middle
        else:
            low = middle
    return high
