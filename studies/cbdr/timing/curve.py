"""Accuracy as a decider's threshold sends more questions to the knowledge base.

A decider gives each question the probability that the model knows its answer. Questions
below a threshold are answered from what is retrieved, the others closed-book. Equal
probabilities are one step: a threshold sends all of them or none. None (unknown) is the
lowest.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qa.evaluation.metrics.intervals import Numbers

Probabilities = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class RetrievalCurve:
    """One point per threshold, by increasing retrieval rate; the first never retrieves.

    Attributes:
        rate: Share of the questions that retrieve, from 0 to 1.
        accuracy: Share of all questions answered correctly, in [0, 1].
        threshold: The least known_probability answered closed-book, -inf if unknown
            ones are too; None where all retrieve.
    """

    rate: tuple[float, ...]
    accuracy: tuple[float, ...]
    threshold: tuple[float | None, ...]

    def cheapest(self, *, within: float) -> int:
        """Return the first point whose accuracy is at most `within` below the best.

        The first retrieves least. Floating-point differences up to 1e-12 are ignored.
        """
        bound = max(self.accuracy) - within - 1e-12
        return next(i for i, value in enumerate(self.accuracy) if value >= bound)


@dataclass(frozen=True, slots=True, eq=False)
class Timing:
    """Questions by increasing known_probability, in which order thresholds send them.

    Attributes:
        order: The questions' positions in that order.
        starts: Where each step begins in that order.
        known_probability: Of each step; -inf for unknown.
        alone: 1 where the closed-book answer is right, else 0, in the questions' order.
        gained: Change of `alone` by retrieving: -1, 0 or 1.
    """

    order: NDArray[np.intp]
    starts: NDArray[np.intp]
    known_probability: Numbers
    alone: Numbers
    gained: Numbers

    def points(self, weights: Numbers) -> tuple[Numbers, Numbers]:
        """Return retrieval rate and accuracy before and after each step.

        Args:
            weights: How often each draw contains each question, (draws, questions).

        Returns:
            Each of shape (draws, steps + 1).
        """
        total = weights.sum(axis=1, keepdims=True)
        sent = np.take(weights, self.order, axis=1)
        gained = sent * self.gained[self.order]
        base = weights @ self.alone
        rate = _from_zero(np.add.reduceat(sent, self.starts, axis=1)) / total
        more = _from_zero(np.add.reduceat(gained, self.starts, axis=1))
        return rate, (base[:, None] + more) / total

    def area(self, weights: Numbers) -> Numbers:
        """Return the mean accuracy over all retrieval rates, of shape (draws,).

        Within a step accuracy is linear, as if its questions were sent in random order.
        """
        rate, accuracy = self.points(weights)
        middle = (accuracy[:, 1:] + accuracy[:, :-1]) / 2
        area: Numbers = (np.diff(rate, axis=1) * middle).sum(axis=1)
        return area


def timing(
    known_probability: Probabilities, alone: Sequence[bool], retrieving: Sequence[bool]
) -> Timing:
    """Order questions by known_probability.

    Args:
        alone: Whether the closed-book answer is right.
        retrieving: Whether the answer with what was retrieved is right.

    Raises:
        ValueError: There are no questions, or the lengths differ.
    """
    if not len(known_probability) or not len(known_probability) == len(alone) == len(
        retrieving
    ):
        raise ValueError(
            f"{len(known_probability)} numbers, {len(alone)} answers alone and {len(retrieving)} "
            "with evidence do not make a curve"
        )
    values = np.array([_value(value) for value in known_probability])
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    own = np.asarray(alone, dtype=np.float64)
    other = np.asarray(retrieving, dtype=np.float64)
    return Timing(order, starts, ordered[starts], own, other - own)


def retrieval_curve(
    known_probability: Probabilities, alone: Sequence[bool], retrieving: Sequence[bool]
) -> RetrievalCurve:
    """Return the result of every threshold; the arguments are those of `timing`."""
    ranked = timing(known_probability, alone, retrieving)
    rate, accuracy = ranked.points(np.ones((1, len(ranked.order))))
    return RetrievalCurve(
        tuple(rate[0].tolist()),
        tuple(accuracy[0].tolist()),
        (*ranked.known_probability.tolist(), None),
    )


def retrieves(known_probability: float | None, threshold: float | None) -> bool:
    """Return whether one of a curve's thresholds sends a question to retrieval."""
    return threshold is None or _value(known_probability) < threshold


def sent_at(
    known_probability: Probabilities, rate: float, ids: Sequence[str]
) -> list[bool]:
    """Return which questions are sent at exactly this rate, lowest probability first.

    Args:
        rate: In [0, 1]; rounded to whole questions.
        ids: Hashed to order questions of equal known_probability at random.
    """
    lots = [hashlib.sha256(name.encode()).digest() for name in ids]
    values = [_value(value) for value in known_probability]
    order = sorted(range(len(values)), key=lambda place: (values[place], lots[place]))
    chosen = set(order[: round(rate * len(order))])
    return [place in chosen for place in range(len(order))]


def _value(known_probability: float | None) -> float:
    return -math.inf if known_probability is None else known_probability


def _from_zero(steps: Numbers) -> Numbers:
    summed = np.cumsum(steps, axis=1)
    return np.concatenate([np.zeros_like(summed[:, :1]), summed], axis=1)
