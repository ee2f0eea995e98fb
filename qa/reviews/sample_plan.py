"""Stratified random samples: which strata, how many of each, and estimates from them.

Allocation is proportional with a minimum a stratum, so that a rare kind of answer, such as
one that was voted down, is seen too. Answers that may as well be wrong as right, which say
more, count several times (Neyman's allocation, with a guess of the spreads). The share among the reviewed therefore says little: in
an estimate each stratum counts as much as it has answers. Its interval is Clopper and
Pearson's for the effective number of reviews: so many as would be as certain, were they
drawn from all alike.

References:
    Cochran, W. G. (1977). Sampling Techniques, 3rd ed., sections 5.3 to 5.5 (the estimator,
    optimum allocation, its variance with the finite population correction) and 5A.7 (collapsed strata).
    Korn, E. L., Graubard, B. I. (1998). Confidence intervals for proportions with small
    expected number of positive counts estimated from survey data. Survey Methodology 24.
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
"""By what strata differ, with the fields of `Cell`; the last is given up first."""
CLOSE: Final = "close"
CLEAR: Final = "clear"
# Of a close answer, of which every second may be at fault, and of a clear one, of which one
# in forty: the standard deviations are 0.5 and 0.16.
_SPREAD: Final = {CLOSE: 3.0}


@dataclass(frozen=True, slots=True)
class Cell:
    """What answers are told apart by; a given-up dimension is blank or None.

    Attributes:
        certainty: "close" where a number was near its threshold, numbers disagree, or a
            voter does; else "clear".
        gate: The one that refused; "" of answers.
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
        """Return the cell that this one falls into where only these dimensions count."""
        return Cell(**{name: getattr(self, name) for name in cell_fields(dimensions)})


def cell_fields(dimensions: Iterable[str]) -> list[str]:
    return [name for dimension in dimensions for name in DIMENSIONS[dimension]]


@dataclass(frozen=True, slots=True)
class Plan:
    """How a sample is drawn: what strata differ by, and how many answers of each."""

    dimensions: tuple[str, ...]
    drawn: Mapping[Cell, int]


def size_for(hours: float, minutes_a_review: float, second_share: float) -> int:
    """Return how many answers, at least 1, can be reviewed, a share of them twice."""
    reviews = hours * 60 / minutes_a_review
    # A whole number must not become the one below it by a rounded quotient.
    return max(1, floor(reviews / (1 + second_share) + 1e-9))


def plan_sample(counts: Mapping[Cell, int], size: int, *, least: int = 2) -> Plan:
    """Choose strata, and how many of each are drawn.

    Dimensions are given up, the last first, until every stratum gets its minimum: two
    of each let a variance be estimated.
    """
    kept = tuple(DIMENSIONS)
    while True:
        strata: Counter[Cell] = Counter()
        for cell, count in counts.items():
            strata[cell.along(kept)] += count
        if not kept or sum(min(least, count) for count in strata.values()) <= size:
            break
        kept = kept[:-1]
    # Where a dimension tells nothing apart, the next may still.
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
    """Return how many are drawn of each stratum: the minimum, then in proportion.

    Args:
        populations: Sizes of the strata, each above 0.
        least: Of each stratum, or all that it has.
        spreads: How much answers of each differ, relative to each other; alike if empty.

    Returns:
        For each stratum at most its population; in all `size`, or everything there is.
        Where `size` does not suffice for the minimum of each, the largest come first.
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
    # What rounding and full strata left over goes where most is missing.
    left = min(size, sum(populations)) - sum(drawn)
    by_missing = sorted(order, key=lambda at: targets[at] - floor(targets[at]))[::-1]
    while left:
        for at in by_missing:
            if left and drawn[at] < populations[at]:
                drawn[at] += 1
                left -= 1
    return drawn


CONFIDENCE = 0.95
# A stratum of one or two reviews says nothing of its own variance: it is drawn towards
# what all reviews say by so many reviews.
_BORROWED = 2.0


@dataclass(frozen=True, slots=True)
class Stratum:
    """Answers of a kind: `reviewed` at random, and `found` to be at fault of these."""

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
        covered: Answers of those strata of which at least one was reviewed; of the others
            nothing is known, and neither share nor interval speaks of them.
    """

    share: float
    low: float
    high: float
    reviewed: int
    population: int
    covered: int


def estimate(strata: Iterable[Stratum]) -> Estimate | None:
    """Return the share of all answers that have the fault; None where none was reviewed."""
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
    """Return how many reviews drawn from all alike would be as certain; may be infinite."""
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
