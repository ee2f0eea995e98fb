"""Chance-corrected agreement of two experts: Cohen's kappa with an interval.

References:
    Cohen, J. (1968). Weighted kappa. Psychological Bulletin 70(4).
    Fleiss, J. L., Cohen, J., Everitt, B. S. (1969). Large sample standard errors of
    kappa and weighted kappa. Psychological Bulletin 72(5).
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
    """The agreement of two raters.

    Attributes:
        value: In [-1, 1]; 1 is full agreement, 0 is agreement by chance. None if both
            always gave the same single judgement, for which kappa is undefined.
        low: Lower end of the 95 % interval; None with `value`.
        high: Upper end of the interval.
        observed: Share of equal judgements; for weighted ones, the mean weight.
        pairs: Number of pairs of judgements.
    """

    value: float | None
    low: float | None
    high: float | None
    observed: float
    pairs: int


def cohen_kappa(
    pairs: Sequence[tuple[int, int]], *, grades: int = 2, weighted: bool = False
) -> Kappa:
    """Return Cohen's kappa of paired judgements, with its 95 % interval.

    The interval is the large-sample one, except where that has no width. For raters who
    agree in everything, it reaches down to the agreement that is still possible with so
    many pairs. For other such tables, for example with a rater who always gives the
    same judgement, half a pair is added to every cell.

    Args:
        pairs: The first and the second judgement, each in 0 to `grades` - 1.
        grades: Number of grades; at least 2.
        weighted: Whether disagreements are weighted linearly by distance, for ordered
            grades.
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
        # With so many empty cells, the table gives no error estimate of its own.
        filled = shares * len(pairs) + 0.5
        error = _error(filled / filled.sum(), weights, len(pairs))
    half = NormalDist().inv_cdf(1 - _TAIL) * error
    low, high = max(-1.0, value - half), min(1.0, value + half)
    return Kappa(value, low, high, observed, len(pairs))


def _weighed(shares: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Return the observed agreement, and the agreement expected by chance."""
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
"""The most answers judged twice that are read, newest first."""
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

    Whether an answer was right to show and whether a refusal was false are unweighted
    kappas; the ordered grades are weighted linearly.
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
    """Return the grades of second reviews, with those of first ones as `first_...`.

    Only second reviews drawn at random: doubtful reviews get one because of what the
    first says, which would bias the agreement.
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
