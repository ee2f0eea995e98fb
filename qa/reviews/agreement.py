"""Agreement of two experts beyond chance: Cohen's kappa with an interval.

References:
    Cohen, J. (1968). Weighted kappa. Psychological Bulletin 70(4).
    Fleiss, J. L., Cohen, J., Everitt, B. S. (1969). Large sample standard errors of kappa
    and weighted kappa. Psychological Bulletin 72(5).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from django.db.models import F, FilteredRelation, Q, QuerySet

from qa.reviews.models import Review

from .judgements import GRADES

_TAIL = 0.025
_NO_WIDTH = 1e-9


@dataclass(frozen=True, slots=True)
class Kappa:
    """How far two raters agree.

    Attributes:
        value: In [-1, 1]; 1 is agreement in everything, 0 as much as by chance. None
            where both always said the same one thing, of which kappa says nothing.
        observed: Share of equal judgements; of weighted ones, the mean weight.
    """

    value: float | None
    low: float | None
    high: float | None
    observed: float
    pairs: int


def cohen_kappa(
    pairs: Sequence[tuple[int, int]], *, grades: int = 2, weighted: bool = False
) -> Kappa:
    """Return Cohen's kappa of judgements in pairs, with its 95 % interval.

    The interval is the large-sample one. Raters who agree in everything would get one
    without width; theirs reaches down to the agreement that so many pairs leave possible.
    Other tables that would, such as that of a rater who always says the same, get that of
    a table with half a pair more in every cell.

    Args:
        pairs: The first and the second judgement, each in 0 to `grades` - 1.
        grades: How many there are; at least 2.
        weighted: Whether a grade's distance counts, linearly: for grades in order.
    """
    if not pairs:
        return Kappa(None, None, None, 0.0, 0)
    shares = np.zeros((grades, grades))  # (first, second)
    np.add.at(shares, tuple(np.transpose(pairs)), 1)
    shares /= len(pairs)
    steps = np.abs(np.subtract.outer(np.arange(grades), np.arange(grades)))
    weights = 1 - steps / (grades - 1) if weighted else (steps == 0).astype(float)
    observed, expected = _weighed(shares, weights)
    if expected > 1 - 1e-12:
        return Kappa(None, None, None, observed, len(pairs))
    value = (observed - expected) / (1 - expected)
    if observed > 1 - 1e-12:
        possible = _TAIL ** (1 / len(pairs))
        low = (possible - expected) / (1 - expected)
        return Kappa(1.0, max(-1.0, low), 1.0, observed, len(pairs))
    error = _error(shares, weights, len(pairs))
    if error < _NO_WIDTH:
        # A table with so many empty cells says nothing of its own chance.
        filled = shares * len(pairs) + 0.5
        error = _error(filled / filled.sum(), weights, len(pairs))
    half = NormalDist().inv_cdf(1 - _TAIL) * error
    low, high = max(-1.0, value - half), min(1.0, value + half)
    return Kappa(value, low, high, observed, len(pairs))


def _weighed(shares: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Return the agreement observed, and the one expected by chance."""
    by_chance = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    return float((weights * shares).sum()), float((weights * by_chance).sum())


def _error(shares: np.ndarray, weights: np.ndarray, pairs: int) -> float:
    observed, expected = _weighed(shares, weights)
    by_row, by_column = weights @ shares.sum(axis=0), weights.T @ shares.sum(axis=1)
    pull = (by_row[:, None] + by_column[None, :]) * (1 - observed)
    spread = float((shares * (weights * (1 - expected) - pull) ** 2).sum())
    spread -= (observed * expected - 2 * expected + observed) ** 2
    return sqrt(max(spread, 0.0) / pairs) / (1 - expected) ** 2


MAX_ANSWERS = 2_000
"""Answers that were judged twice, the newest ones."""
_WHOLLY = int(Review.Grade.WHOLLY)
_Row = dict[str, Any]  # the second review's values, and the first's as `first_...`


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement on "right_to_show", "should_be_answered" or one of the grades."""

    name: str
    label: str
    kappa: Kappa


def agreement() -> tuple[Agreement, ...]:
    """Return the agreement of first and second reviews (one query).

    Whether an answer was right to show and whether a refusal was a false one are plain
    kappas; the grades, which are in order, are weighted linearly.
    """
    rows = judged_twice(Review.objects.order_by("-reviewed_at", "-pk"))
    found = list(rows[:MAX_ANSWERS])
    judged = [row for row in found if row["correctness"] is not None]
    refused = [row for row in found if row["should_be_answered"] is not None]
    graded = {
        name: cohen_kappa(
            [(row[f"first_{name}"], row[name]) for row in judged],
            grades=len(Review.Grade),
            weighted=True,
        )
        for name in GRADES
    }
    false = [
        (int(row["first_should_be_answered"]), int(row["should_be_answered"]))
        for row in refused
    ]
    return (
        Agreement("right_to_show", "right to show", kappa_of_right(judged)),
        Agreement(
            "should_be_answered", "should have been answered", cohen_kappa(false)
        ),
        *(Agreement(name, name, kappa) for name, kappa in graded.items()),
    )


def judged_twice(reviews: QuerySet[Review]) -> "QuerySet[Review, Any]":
    """Return the grades of second reviews, and of the first ones as `first_...`.

    Of those that were drawn for it: what is doubted is asked about because of what the
    first review says.
    """
    names = (*GRADES, "should_be_answered")
    done = Q(answer__reviews__round=1, answer__reviews__state=Review.State.DONE)
    first = FilteredRelation("answer__reviews", condition=done)
    drawn = reviews.filter(round=2, state=Review.State.DONE, stratum__isnull=False)
    rows = drawn.annotate(first=first)
    found: QuerySet[Review, Any] = rows.filter(first__isnull=False).values(
        *names, **{f"first_{name}": F(f"first__{name}") for name in names}
    )
    return found


def kappa_of_right(rows: Iterable[_Row]) -> Kappa:
    """Return the agreement on whether answers, graded twice, were right to show."""
    return cohen_kappa([(_is_right(row, "first_"), _is_right(row)) for row in rows])


def _is_right(row: _Row, whose: str = "") -> int:
    grades = (row[f"{whose}correctness"], row[f"{whose}truthfulness"])
    return int(grades == (_WHOLLY, _WHOLLY))
