"""What a calibration yields (thresholds with a certificate, or why none), and binomial bounds."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincinv

from qa.pipeline.policy import Policy


class Method(StrEnum):
    """How thresholds are chosen so that the promise holds."""

    LEARN_THEN_TEST = "learn_then_test"
    GUARANTEED_RISK = "selection_with_guaranteed_risk"


@dataclass(frozen=True, slots=True)
class Tested:
    """One combination of thresholds on the answers that it was tested on.

    Attributes:
        thresholds: By the policy's field.
        labelled: How many answers it was tested on.
        shown: How many of them it shows.
        wrong: How many of the shown are wrong.
        bound: Upper bound on the risk, at the confidence that the test ran at.
        passed: Whether the bound is at most epsilon.
    """

    thresholds: Mapping[str, float]
    labelled: int
    shown: int
    wrong: int
    bound: float
    passed: bool

    @property
    def coverage(self) -> float:
        """Shown among the labelled."""
        return self.shown / self.labelled if self.labelled else 0.0

    @property
    def risk(self) -> float | None:
        """Wrong among the shown; None where none is shown."""
        return self.wrong / self.shown if self.shown else None


@dataclass(frozen=True, slots=True)
class Certified:
    """Thresholds of which at most epsilon of the shown answers are wrong.

    That holds with probability 1 - delta over the labelled answers drawn, for questions
    that are drawn as they were.

    Attributes:
        policy: The policy calibrated from, with the thresholds in it and their gates on.
        signals: Those whose thresholds were chosen.
        epsilon: The promised risk.
        delta: Probability that the promise is broken.
        learnt: Labelled answers that the candidates were ordered on; not tested on.
        tested: The chosen thresholds on the answers that they were tested on.
        sequence: All that was tested, in the order of testing.
        groups: Number of groups among the answers tested on.
        group_bound: Upper bound on the risk when groups are resampled whole; None where
            nothing shown was wrong.
        unmeasured: Labelled answers left out, for nothing was measured on them.
        warnings: What else to know, in sentences.
    """

    policy: Policy
    method: Method
    signals: tuple[str, ...]
    epsilon: float
    delta: float
    learnt: int
    tested: Tested
    sequence: tuple[Tested, ...]
    groups: int
    group_bound: float | None
    unmeasured: int
    warnings: tuple[str, ...]

    @property
    def thresholds(self) -> Mapping[str, float]:
        """The chosen thresholds, by the policy's field."""
        return self.tested.thresholds

    @property
    def explanation(self) -> str:
        """The promise in one sentence."""
        tested = self.tested
        return (
            f"At most {self.epsilon:.1%} of what is shown is wrong, with "
            f"{1 - self.delta:.0%} certainty: of {tested.labelled} labelled answers "
            f"{tested.shown} are shown ({tested.coverage:.1%}), {tested.wrong} of them "
            f"wrong, so the risk is at most {tested.bound:.2%}."
        )


@dataclass(frozen=True, slots=True)
class NotCertified:
    """That no thresholds earn the promise from these labelled answers, and why.

    Attributes:
        signals: Those whose thresholds were tried.
        labelled: Labelled answers in all, but the unmeasured.
        learnt: Of these, those that the candidates were ordered on.
        needed: Shown answers without any error that could earn it, of those tested on.
        best: What was tested and has the least bound, if anything was.
        best_possible: Of all combinations tried, the one with the least bound on the
            tested answers. Chosen with hindsight: it tells how far off one is, no more.
        needed_at_best_risk: Shown answers that would earn it at the risk of
            `best_possible`; None where no number would.
        sequence: All that was tested, in the order of testing.
        unmeasured: Labelled answers left out, for nothing was measured on them.
        warnings: What else to know, in sentences.
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
        """Why there is no promise, and what it would take, in sentences."""
        promise = (
            f"at most {self.epsilon:.1%} wrong with {1 - self.delta:.0%} certainty"
        )
        tested = self.labelled - self.learnt
        lines = [
            f"No thresholds earn {promise}.",
            f"There are {self.labelled} labelled answers, {tested} of them to test on; "
            f"even without a single error it takes {self.needed} shown ones.",
        ]
        best = self.best_possible
        if best is None or not best.shown:
            return " ".join((*lines, "None of them is shown by any thresholds."))
        lines.append(
            f"The best bound reached is {best.bound:.1%}, at a coverage of "
            f"{best.coverage:.1%} ({best.wrong} wrong of {best.shown} shown)."
        )
        if best.bound <= self.epsilon:
            lines.append(
                "That would be enough, but it is known with hindsight only: the order "
                "of testing, which may not look, began elsewhere and was stopped. "
                "More labels make such bad luck rare."
            )
        elif self.needed_at_best_risk is None:
            lines.append(
                f"Even there {best.risk:.1%} are wrong: more labels alone will not "
                "help, better signals or a better model would."
            )
        else:
            lines.append(
                f"If that risk is true, about {self.needed_at_best_risk} shown ones "
                "would earn it."
            )
        return " ".join(lines)


@dataclass(frozen=True, slots=True)
class CostChoice:
    """The thresholds of the least expected cost; no guarantee is made of them.

    Attributes:
        policy: The policy calibrated from, with the thresholds in it and their gates on.
        thresholds: By the policy's field.
        cost: Mean cost of a question, on the answers that it was chosen on.
        low: Lower end of the 95 % interval of that cost over resampled groups.
        high: Upper end.
        optimism: How much lower the cost looks for having been chosen on the same
            answers (bootstrap); add it for an honest expectation.
        labelled: Answers in all.
        shown: Of these, shown.
        wrong: Of the shown, wrong.
        refused_right: Refused although the draft was right.
        unmeasured: Labelled answers left out, for nothing was measured on them.
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


# Exact binomial bounds: what k wrong among n shown answers say about the risk.


FloatArray = NDArray[np.float64]


def p_values(wrong: ArrayLike, shown: ArrayLike, epsilon: float) -> FloatArray:
    """Return P(Bin(shown, epsilon) <= wrong), the p-value of "the risk is above epsilon".

    Fractional counts are interpolated by the incomplete beta function.

    Args:
        wrong: Wrong ones among the shown, 0 <= wrong <= shown.
        shown: Shown answers; of none nothing is known, and the p-value is 1.
        epsilon: The risk, in (0, 1).
    """
    k, n = np.asarray(wrong, np.float64), np.asarray(shown, np.float64)
    is_informative = k < n
    rest = np.where(is_informative, n - k, 1.0)
    below = betainc(rest, np.where(is_informative, k, 0.0) + 1, 1 - epsilon)
    return np.where(is_informative, below, 1.0)


def upper_bounds(wrong: ArrayLike, shown: ArrayLike, delta: float) -> FloatArray:
    """Return the Clopper-Pearson upper bounds on the risk, each at confidence 1 - delta.

    A bound is at most epsilon exactly where `p_values(..., epsilon)` is at most delta.

    Args:
        wrong: Wrong ones among the shown, 0 <= wrong <= shown.
        shown: Shown answers; of none nothing is known, and the bound is 1.
        delta: In (0, 1).
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
    """Return how many shown answers, none of them wrong, earn "at most epsilon wrong".

    The least n with (1 - epsilon)^n <= delta: 59 for 5 % at 95 %.
    """
    return math.ceil(math.log(delta) / math.log1p(-epsilon))


def shown_needed(risk: float, epsilon: float, delta: float) -> int | None:
    """Return how many shown answers would earn it if `risk` of them were wrong.

    None where no number would, for the risk is not below epsilon.
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
