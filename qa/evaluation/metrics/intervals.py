"""Rates, each with its interval."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Z_95 = 1.959963984540054  # the normal distribution's 0.975 quantile


@dataclass(frozen=True, slots=True)
class Rate:
    """`count` of `total`, with the Wilson 95 % interval.

    `value`, `low` and `high` are None where there was nothing to count.
    """

    count: int
    total: int

    @property
    def value(self) -> float | None:
        return self.count / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The Wilson score interval at 95 % (Wilson, 1927)."""
        return wilson_interval(self.count, self.total) if self.total else None


def wilson_interval(count: int, total: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share.

    References:
        E. B. Wilson, "Probable inference, the law of succession, and statistical
        inference", JASA 22 (1927).

    Raises:
        ValueError: `total` is not positive, or `count` is outside [0, total].
    """
    if total <= 0 or not 0 <= count <= total:
        msg = f"{count} of {total} is no share"
        raise ValueError(msg)
    share = count / total
    spread = _Z_95**2 / total
    centre = (share + spread / 2) / (1 + spread)
    half = _Z_95 * math.sqrt(share * (1 - share) / total + spread / (4 * total))
    half /= 1 + spread
    # Rounding must not put the share itself outside its interval.
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


# Bootstrap intervals: what a figure would be on other questions like these.


Numbers = NDArray[np.floating[Any]]
Flags = NDArray[np.bool_]
Interval = tuple[float, float]
# Takes weights of shape (draws, rows): how often each row stands in each draw. Returns
# one number a draw, or a row of them for each of several figures; NaN where a figure is
# not defined.
Statistic = Callable[[Numbers], Numbers]

DRAWS = 1000
SEED = 20231102  # any fixed number: the same rows have the same intervals
_AT_ONCE = 200_000  # weights held at a time: what a processor's cache holds


def clusters_of(ids_and_groups: Sequence[tuple[str, str]]) -> NDArray[np.intp]:
    """Number the groups; a row whose group is "" is one of its own."""
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
    """Yield how often each row stands in each draw, some draws at a time.

    Each draw takes as many clusters as there are, with replacement.

    Args:
        clusters: The number of each row's cluster, from 0 on without a gap.
        draws: How many draws in all.
        seed: The same seed gives the same draws.
        within: Draw the rows of each drawn cluster too, as many as it has: what the
            figure would be on other questions about other articles. A little wider.
    """
    generator = np.random.default_rng(seed)
    count = int(clusters.max()) + 1
    step = max(1, _AT_ONCE // len(clusters))
    for begin in range(0, draws, step):
        drawn = generator.integers(0, count, (min(step, draws - begin), count))
        times = [np.bincount(one, minlength=count) for one in drawn]
        # Whole numbers up to 2^24 are exact in single precision.
        counts = np.array(times, dtype=np.float32)
        if within:
            yield _drawn_within(counts, clusters, generator)
        else:
            yield np.take(counts, clusters, axis=1)


def _drawn_within(
    times: Numbers, clusters: NDArray[np.intp], generator: np.random.Generator
) -> Numbers:
    """Draw rows with replacement, from each cluster as often as it was drawn."""
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
    seed: int = SEED,
    within: bool = False,
) -> list[Interval | None]:
    """Return the 95 % percentile interval of each figure, on the same draws.

    None where there are not two clusters, where fewer than 95 % of the draws define the
    figure, or where all draws agree: 0 of 30 is no proof of 0, and resampling can't tell.
    """
    if not len(clusters) or not statistics:
        return [None] * len(statistics)
    found = [
        np.vstack([statistic(weights) for statistic in statistics])
        for weights in resampled(clusters, draws=draws, seed=seed, within=within)
    ]
    if clusters.max() < 1:
        return [None] * len(found[0])
    return [_percentiles(values) for values in np.concatenate(found, axis=1)]


def share(counted: Flags, among: Flags) -> Statistic:
    return mean(np.asarray(counted, dtype=np.float64), among)


def mean(values: Numbers, among: Flags) -> Statistic:
    whole = np.asarray(among, dtype=np.float32)
    summed = np.where(among, values, 0.0).astype(np.float32)

    def mean_of(weights: Numbers) -> Numbers:
        totals = weights @ whole
        sums = weights @ summed
        return np.where(totals > 0, sums / np.maximum(totals, 1.0), np.nan)

    return mean_of


def _percentiles(values: Numbers) -> Interval | None:
    defined = values[~np.isnan(values)]
    if len(defined) < 0.95 * len(values) or np.ptp(defined) == 0:
        return None
    low, high = np.quantile(defined, (0.025, 0.975))
    return float(low), float(high)
