"""Rates and differences with intervals, and tests of two runs on the same questions.

Wilson, JASA 22 (1927). McNemar, Psychometrika 12 (1947), in its exact binomial form.
Holm, Scandinavian Journal of Statistics 6 (1979).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Rate:
    """`count` of `total`; its value and interval are None if `total` is 0."""

    count: int
    total: int

    @property
    def value(self) -> float | None:
        return self.count / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float] | None:
        return wilson_interval(self.count, self.total) if self.total else None


def wilson_interval(count: int, total: int) -> tuple[float, float]:
    # Imported lazily: statsmodels loads pandas, which most processes don't need.
    from statsmodels.stats.proportion import proportion_confint  # noqa: PLC0415

    if total <= 0 or not 0 <= count <= total:
        raise ValueError(f"{count} of {total} is not a share")
    low, high = proportion_confint(count, total, method="wilson")
    # Rounding errors must not put the share outside its interval.
    low, high = min(count / total, float(low)), max(count / total, float(high))
    return max(0.0, low), min(1.0, high)


Numbers = NDArray[np.floating[Any]]
Flags = NDArray[np.bool_]
Interval = tuple[float, float]
# Takes weights of shape (draws, rows): how often each row is in each draw. Returns one
# number per draw, shape (draws,), or several figures, shape (figures, draws); NaN where
# undefined.
Statistic = Callable[[Numbers], Numbers]

DRAWS = 1000
SEED = 20231102  # fixed, so that the same rows always have the same intervals
_AT_ONCE = 200_000  # weights held at a time, so that they fit in the processor's cache


def clusters_of(ids_and_groups: Sequence[tuple[str, str]]) -> NDArray[np.intp]:
    """Number the groups; a row whose group is "" is a group of its own."""
    numbers: dict[tuple[str, str], int] = {}
    found = [
        numbers.setdefault((group, "") if group else ("", name), len(numbers))
        for name, group in ids_and_groups
    ]
    return np.array(found, dtype=np.intp)


def resampled(
    clusters: NDArray[np.intp],
    *,
    draws: int = DRAWS,
    seed: int = SEED,
    within: bool = False,
) -> Iterator[Numbers]:
    """Yield how often each row is in each draw of a cluster bootstrap.

    Each draw takes as many clusters as there are, with replacement. Clusters are
    numbered from 0 without gaps. `within` also resamples the rows of each drawn
    cluster, to generalise to other questions about other articles; intervals become a
    little wider.
    """
    generator = np.random.default_rng(seed)
    count = int(clusters.max()) + 1
    step = max(1, _AT_ONCE // len(clusters))
    for begin in range(0, draws, step):
        drawn = generator.integers(0, count, (min(step, draws - begin), count))
        times = [np.bincount(one, minlength=count) for one in drawn]
        # Single precision is exact for integers up to 2^24.
        counts = np.array(times, dtype=np.float32)
        if within:
            yield _drawn_within(counts, clusters, generator)
        else:
            yield np.take(counts, clusters, axis=1)


def _drawn_within(
    times: Numbers, clusters: NDArray[np.intp], generator: np.random.Generator
) -> Numbers:
    weights = np.empty((len(times), len(clusters)), dtype=np.float32)
    for cluster in range(times.shape[1]):
        rows = np.flatnonzero(clusters == cluster)
        size = times[:, cluster].astype(np.int64) * len(rows)
        weights[:, rows] = generator.multinomial(
            size, np.full(len(rows), 1 / len(rows))
        )
    return weights


def bootstrap(
    statistics: Sequence[Statistic],
    clusters: NDArray[np.intp],
    *,
    draws: int = DRAWS,
    within: bool = False,
) -> list[Interval | None]:
    """Return the 95 % percentile interval of each figure, all on the same draws.

    None if there are fewer than two clusters, if fewer than 95 % of the draws define
    the figure, or if all draws agree, since 0 of 30 does not prove 0.
    """
    if not len(clusters) or not statistics:
        return [None] * len(statistics)
    found = [
        np.vstack([statistic(weights) for statistic in statistics])
        for weights in resampled(clusters, draws=draws, within=within)
    ]
    if clusters.max() < 1:
        return [None] * len(found[0])
    return [_percentiles(values) for values in np.concatenate(found, axis=1)]


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure of two runs on the same questions, second minus first, at 95 %."""

    first: float | None
    second: float | None
    interval: Interval | None

    @property
    def value(self) -> float | None:
        if self.first is None or self.second is None:
            return None
        return self.second - self.first


def differences(
    pairs: Sequence[tuple[Statistic, Statistic]],
    clusters: NDArray[np.intp],
    *,
    within: bool = False,
) -> list[Difference]:
    """Return the differences of two runs; each draw uses the same questions of both."""
    once = np.ones((1, len(clusters)))
    statistics = [_minus(*pair) for pair in pairs]
    intervals = bootstrap(statistics, clusters, within=within)
    return [
        Difference(_value(first(once)), _value(second(once)), interval)
        for (first, second), interval in zip(pairs, intervals, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class McNemar:
    both: int
    only_first: int
    only_second: int
    neither: int

    @property
    def p_value(self) -> float:
        """The two-sided p-value of the exact test, in (0, 1]."""
        # Imported lazily: it loads pandas.
        from statsmodels.stats import contingency_tables  # noqa: PLC0415

        table = [[self.both, self.only_first], [self.only_second, self.neither]]
        return float(contingency_tables.mcnemar(table, exact=True).pvalue)


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> McNemar:
    pairs = list(zip(first, second, strict=True))
    return McNemar(
        both=pairs.count((True, True)),
        only_first=pairs.count((True, False)),
        only_second=pairs.count((False, True)),
        neither=pairs.count((False, False)),
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values in the same order, adjusted for all tests made at once.

    The version in statsmodels runs the garbage collector, which takes most of a second.
    """
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return list(np.minimum(adjusted, 1.0).tolist())


def share(counted: Flags, among: Flags) -> Statistic:
    return mean(np.asarray(counted, dtype=np.float64), among)


def mean(values: Numbers, among: Flags) -> Statistic:
    whole = np.asarray(among, dtype=np.float32)
    summed = np.where(among, values, 0.0).astype(np.float32)

    def weighted(weights: Numbers) -> Numbers:
        totals = weights @ whole
        sums = weights @ summed
        return np.where(totals > 0, sums / np.maximum(totals, 1.0), np.nan)

    return weighted


def _percentiles(values: Numbers) -> Interval | None:
    defined = values[~np.isnan(values)]
    if len(defined) < 0.95 * len(values) or np.ptp(defined) == 0:
        return None
    low, high = np.quantile(defined, (0.025, 0.975))
    return float(low), float(high)


def _minus(first: Statistic, second: Statistic) -> Statistic:
    return lambda weights: second(weights) - first(weights)


def _value(numbers: Numbers) -> float | None:
    value = float(numbers[0])
    return None if math.isnan(value) else value
