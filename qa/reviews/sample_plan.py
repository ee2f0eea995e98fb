"""Stratified random samples: how many strata, and how many of each.

Allocation is proportional with a least share a stratum, so that a rare kind of answer,
such as one that was voted down, is seen too.

References:
    Cochran, W. G. (1977). Sampling Techniques, 3rd ed., chapters 5 and 5A.7 (collapsed
    strata).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from math import floor


@dataclass(frozen=True, slots=True)
class Cell:
    """What answers are told apart by; a given-up dimension is blank or None.

    Attributes:
        gate: The one that refused; "" of answers.
        vote: "up", "down" or "none".
        product_line: The tag's id, and so `line_of_business`.
        period: The day, in UTC.
    """

    outcome: str = ""
    gate: str = ""
    vote: str = ""
    product_line: int | None = None
    line_of_business: int | None = None
    period: date | None = None

    def along(self, dimensions: Sequence[str]) -> "Cell":
        """Return the cell that this one falls into where only these dimensions count."""
        names = set(dimensions)
        kept = names | ({"gate"} if "outcome" in names else set())
        blank = Cell()
        given_up = {name: getattr(blank, name) for name in _NAMES if name not in kept}
        return replace(self, **given_up)


_NAMES = ("outcome", "gate", "vote", "product_line", "line_of_business", "period")
DIMENSIONS = ("outcome", "vote", "product_line", "line_of_business", "period")
"""The last is given up first."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a sample is drawn.

    Attributes:
        dimensions: By what the strata differ.
        drawn: How many answers of each stratum; at most as many as it has.
    """

    dimensions: tuple[str, ...]
    drawn: Mapping[Cell, int]


def size_for(hours: float, minutes_a_review: float, second_share: float) -> int:
    """Return how many answers can be reviewed in that time, some of them twice.

    Args:
        hours: Above 0.
        minutes_a_review: Above 0.
        second_share: In [0, 1]: how many of the answers get a second review.

    Returns:
        At least 1.
    """
    reviews = hours * 60 / minutes_a_review
    # A whole number must not become the one below it by a rounded quotient.
    return max(1, floor(reviews / (1 + second_share) + 1e-9))


def plan_sample(counts: Mapping[Cell, int], size: int, *, least: int = 2) -> Plan:
    """Choose strata, and how many of each are drawn.

    Dimensions are given up, the last first, until every stratum gets its least share: two
    of each let a variance be estimated.

    Args:
        counts: Answers of each cell.
        size: How many are to be drawn in all.
        least: Of each stratum, or all that it has.
    """
    kept: tuple[str, ...] = DIMENSIONS
    while True:
        strata: Counter[Cell] = Counter()
        for cell, count in counts.items():
            strata[cell.along(kept)] += count
        if not kept or sum(min(least, count) for count in strata.values()) <= size:
            break
        kept = kept[:-1]
    # Where a dimension tells nothing apart, the next may still.
    cells = [cell for cell, count in strata.items() if count > 0]
    drawn = allocate([strata[cell] for cell in cells], size, least=least)
    return Plan(kept, dict(zip(cells, drawn, strict=True)))


def allocate(populations: Sequence[int], size: int, *, least: int = 2) -> list[int]:
    """Return how many are drawn of each stratum: the least share, then in proportion.

    Args:
        populations: Sizes of the strata, each above 0.
        size: How many are to be drawn in all.
        least: Of each stratum, or all that it has.

    Returns:
        For each stratum at most its population; in all `size`, or everything there is.
        Where `size` does not suffice for the least shares, the largest strata come first.
    """
    drawn = [0] * len(populations)
    order = sorted(range(len(populations)), key=lambda at: -populations[at])
    left = min(size, sum(populations))
    for _ in range(least):
        for at in order:
            if left and drawn[at] < populations[at]:
                drawn[at] += 1
                left -= 1
    total = sum(populations)
    targets = [left * population / total for population in populations] if total else []
    for at, target in enumerate(targets):
        more = min(floor(target), populations[at] - drawn[at])
        drawn[at] += more
    # What rounding and full strata left over goes where most is missing.
    left = min(size, total) - sum(drawn)
    by_missing = sorted(order, key=lambda at: targets[at] - floor(targets[at]))[::-1]
    while left:
        for at in by_missing:
            if left and drawn[at] < populations[at]:
                drawn[at] += 1
                left -= 1
    return drawn
