"""Two runs on the same questions: is one better, or was it chance?

References:
    McNemar, "Note on the sampling error of the difference between correlated
    proportions or percentages", Psychometrika 12 (1947), in its exact binomial form.
    Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal
    of Statistics 6 (1979).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .intervals import DRAWS, SEED, Interval, Numbers, Statistic, bootstrap


@dataclass(frozen=True, slots=True)
class McNemar:
    """Questions that only one of two runs got right, and what that tells.

    Attributes:
        both: Right in both.
        only_first: Right in the first alone.
        only_second: Right in the second alone.
        neither: Wrong in both.
    """

    both: int
    only_first: int
    only_second: int
    neither: int

    @property
    def p_value(self) -> float:
        """Two-sided: how often chance alone would be at least as uneven; in (0, 1]."""
        differing = self.only_first + self.only_second
        fewer = min(self.only_first, self.only_second)
        tail = math.fsum(_binomial_half(k, differing) for k in range(fewer + 1))
        return min(1.0, 2 * tail)


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure of the second run minus the first's, on the same questions.

    Attributes:
        first: The first run's figure; None where it is not defined.
        second: The second run's.
        interval: The 95 % interval of the difference, or None.
    """

    first: float | None
    second: float | None
    interval: Interval | None

    @property
    def value(self) -> float | None:
        """Second minus first."""
        if self.first is None or self.second is None:
            return None
        return self.second - self.first


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> McNemar:
    """Count what two runs got right, question by question.

    Args:
        first: Whether the first run got each question right.
        second: The same of the second, in the same order.
    """
    pairs = list(zip(first, second, strict=True))
    return McNemar(
        both=pairs.count((True, True)),
        only_first=pairs.count((True, False)),
        only_second=pairs.count((False, True)),
        neither=pairs.count((False, False)),
    )


def differences(
    pairs: Sequence[tuple[Statistic, Statistic]],
    clusters: NDArray[np.intp],
    *,
    draws: int = DRAWS,
    seed: int = SEED,
    within: bool = False,
) -> list[Difference]:
    """Return what two runs differ in, each draw taking the same questions of both.

    Args:
        pairs: The same statistic of the first and of the second run.
        clusters: The number of each question's cluster.
        draws: How many draws.
        seed: The same seed gives the same draws.
        within: Draw the questions of each drawn cluster too.
    """
    once = np.ones((1, len(clusters)))
    statistics = [_minus(*pair) for pair in pairs]
    intervals = bootstrap(statistics, clusters, draws=draws, seed=seed, within=within)
    return [
        Difference(_value(first(once)), _value(second(once)), interval)
        for (first, second), interval in zip(pairs, intervals, strict=True)
    ]


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted by Holm's method, in the order given."""
    order = np.argsort(p_values, kind="stable")
    count = len(p_values)
    stepped = np.asarray(p_values, np.float64)[order] * (count - np.arange(count))
    adjusted = np.empty(count)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return [float(p) for p in adjusted]


def _minus(first: Statistic, second: Statistic) -> Statistic:
    def difference(weights: Numbers) -> Numbers:
        return second(weights) - first(weights)

    return difference


def _value(numbers: Numbers) -> float | None:
    value = float(numbers[0])
    return None if math.isnan(value) else value


def _binomial_half(k: int, n: int) -> float:
    """Return C(n, k) / 2^n, through logarithms: the integers have thousands of digits."""
    choices = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(choices - n * math.log(2))
