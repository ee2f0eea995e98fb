"""Stratified random samples: choice of strata, allocation, and estimates from them.

Allocation is proportional with a minimum per stratum, so that rare kinds of answers,
such as those voted down, are included. Close answers, which may be wrong as easily as
right, tell more and are given several times the weight (Neyman allocation with guessed
spreads). The raw share among the reviewed answers is therefore biased: in an estimate,
each stratum is weighted by its number of answers. The interval is that of Clopper and
Pearson for the effective number of reviews: the size of a simple random sample that
would be as certain.

References:
    Cochran, W. G. (1977). Sampling Techniques, 3rd ed., sections 5.3 to 5.5 (the
    estimator, optimum allocation, its variance with the finite population correction)
    and 5A.7 (collapsed strata).
    Korn, E. L., Graubard, B. I. (1998). Confidence intervals for proportions with small
    expected number of positive counts estimated from survey data. Survey Methodology
    24.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import floor
from typing import Final

import numpy as np
from scipy.special import betaincinv

DIMENSIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "certainty": ("certainty",),
    "outcome": ("outcome", "gate"),
    "vote": ("vote",),
    "product_line": ("product_line_id",),
    "line_of_business": ("line_of_business_id",),
    "period": ("period",),
}
"""The dimensions of strata, with the fields of `Cell`; the last is dropped first."""
CLOSE: Final = "close"
CLEAR: Final = "clear"
# Relative standard deviations: 0.5 for close answers, if one in two is wrong, against
# 0.16 for clear ones, if one in forty is.
_SPREAD: Final = {CLOSE: 3.0}


@dataclass(frozen=True, slots=True)
class Cell:
    """The values that define a stratum; those of a dropped dimension are blank or None.

    Attributes:
        certainty: "close" if a number was near its threshold, numbers disagree, or a
            voter disagrees; else "clear".
        gate: The gate that refused; "" for answers.
        vote: "up", "down" or "none".
        period: The day, in UTC.
    """

    outcome: str = ""
    gate: str = ""
    vote: str = ""
    certainty: str = ""
    product_line_id: int | None = None
    line_of_business_id: int | None = None
    period: date | None = None

    def along(self, dimensions: Iterable[str]) -> "Cell":
        """Return the cell reduced to these dimensions."""
        return Cell(**{name: getattr(self, name) for name in cell_fields(dimensions)})


def cell_fields(dimensions: Iterable[str]) -> list[str]:
    return [name for dimension in dimensions for name in DIMENSIONS[dimension]]


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a sample: its dimensions, and the number to draw per stratum."""

    dimensions: tuple[str, ...]
    drawn: Mapping[Cell, int]


def size_for(hours: float, minutes_a_review: float, second_share: float) -> int:
    """Return how many answers fit the hours, at least 1, if a share is judged twice."""
    reviews = hours * 60 / minutes_a_review
    # The tolerance keeps a rounding error from turning a whole number into the one
    # below.
    return max(1, floor(reviews / (1 + second_share) + 1e-9))


def plan_sample(counts: Mapping[Cell, int], size: int, *, least: int = 2) -> Plan:
    """Choose the strata and the number to draw from each.

    Dimensions are dropped, the last first, until every stratum gets its minimum; a
    variance can be estimated from two.
    """
    kept = tuple(DIMENSIONS)
    while True:
        strata: Counter[Cell] = Counter()
        for cell, count in counts.items():
            strata[cell.along(kept)] += count
        if not kept or sum(min(least, count) for count in strata.values()) <= size:
            break
        kept = kept[:-1]
    # An empty stratum cannot be drawn from.
    cells = [cell for cell, count in strata.items() if count > 0]
    drawn = allocate(
        [strata[cell] for cell in cells],
        size,
        least=least,
        spreads=[_SPREAD.get(cell.certainty, 1.0) for cell in cells],
    )
    return Plan(kept, dict(zip(cells, drawn, strict=True)))


def allocate(
    populations: Sequence[int],
    size: int,
    *,
    least: int = 2,
    spreads: Sequence[float] = (),
) -> list[int]:
    """Return how many to draw from each stratum: the minimum, then in proportion.

    Args:
        populations: Sizes of the strata, each above 0.
        size: Number to draw in all.
        least: Minimum per stratum, or all that it has.
        spreads: The strata's standard deviations, relative to each other; equal if
            empty.

    Returns:
        For each stratum at most its population; in all `size`, or everything there is.
        If `size` is too small for the minimum of each, the largest come first.
    """
    drawn = [0] * len(populations)
    order = sorted(range(len(populations)), key=lambda at: -populations[at])
    left = min(size, sum(populations))
    for _ in range(least):
        for at in order:
            if left and drawn[at] < populations[at]:
                drawn[at] += 1
                left -= 1
    weights = [
        population * spread
        for population, spread in zip(
            populations, spreads or [1.0] * len(populations), strict=True
        )
    ]
    targets = [left * weight / sum(weights) for weight in weights]
    for at, target in enumerate(targets):
        drawn[at] += min(floor(target), populations[at] - drawn[at])
    # The rest left by rounding and full strata goes where the rounding loss is
    # greatest.
    left = min(size, sum(populations)) - sum(drawn)
    by_missing = sorted(order, key=lambda at: targets[at] - floor(targets[at]))[::-1]
    while left:
        for at in by_missing:
            if left and drawn[at] < populations[at]:
                drawn[at] += 1
                left -= 1
    return drawn


CONFIDENCE = 0.95
# One or two reviews give no estimate of a stratum's variance: its share is shrunk
# towards the overall one, which counts as this many reviews.
_BORROWED = 2.0


@dataclass(frozen=True, slots=True)
class Stratum:
    """The counts of a stratum: answers, those reviewed, and those of them at fault."""

    population: int
    reviewed: int
    found: float

    def __post_init__(self) -> None:
        if not 0 <= self.found <= self.reviewed <= self.population:
            msg = (
                f"Of {self.population} answers {self.reviewed} cannot be reviewed and "
                f"{self.found} of these found at fault."
            )
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share of all answers with its 95 % interval, each in [0, 1].

    Attributes:
        share: The estimated share; `low` and `high` are its interval.
        reviewed: Number of answers reviewed.
        population: Number of answers in all strata.
        covered: Number of answers in strata with at least one review; share and
            interval do not cover the other strata.
    """

    share: float
    low: float
    high: float
    reviewed: int
    population: int
    covered: int


def estimate(strata: Iterable[Stratum]) -> Estimate | None:
    """Return the estimated share of answers at fault; None if none was reviewed."""
    given = list(strata)
    known = [stratum for stratum in given if stratum.reviewed]
    if not known:
        return None
    size = np.array([stratum.population for stratum in known], dtype=np.float64)
    reviewed = np.array([stratum.reviewed for stratum in known], dtype=np.float64)
    found = np.array([stratum.found for stratum in known], dtype=np.float64)
    weight = size / size.sum()
    share = float(weight @ (found / reviewed))
    low, high = _interval(share, _effective(size, reviewed, found))
    return Estimate(
        share,
        low,
        high,
        reviewed=int(reviewed.sum()),
        population=sum(stratum.population for stratum in given),
        covered=int(size.sum()),
    )


def _effective(size: np.ndarray, reviewed: np.ndarray, found: np.ndarray) -> float:
    """Return the size of a simple random sample of equal variance; may be infinite."""
    weight = size / size.sum()
    overall = (found.sum() + 0.5) / (reviewed.sum() + 1)
    likely = (found + _BORROWED * overall) / (reviewed + _BORROWED)
    spread = likely * (1 - likely) * size / np.maximum(size - 1, 1)
    variance = float(np.sum(weight**2 * (1 - reviewed / size) * spread / reviewed))
    middle = float(weight @ likely)
    return middle * (1 - middle) / variance if variance else float("inf")


def _interval(share: float, effective: float) -> tuple[float, float]:
    if np.isinf(effective):
        return share, share
    tail = (1 - CONFIDENCE) / 2
    found, rest = share * effective, (1 - share) * effective
    low = float(betaincinv(found, rest + 1, tail)) if found > 0 else 0.0
    high = float(betaincinv(found + 1, rest, 1 - tail)) if rest > 0 else 1.0
    return min(low, share), max(high, share)
