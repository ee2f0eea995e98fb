"""How well orders of a question's notes put the relevant ones first."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from qa.evaluation.metrics.intervals import Difference, differences, mean
from qa.evaluation.suites.scifact import recall_at, reciprocal_rank

PLACES: Final = (1, 3, 5)

_Measure = Callable[[Sequence[str], Sequence[str], int], float]


def precision_at(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the relevant share of the first k, or of all if fewer are ranked."""
    if not ranked:
        raise ValueError("nothing is ranked")
    return len(set(ranked[:k]) & set(relevant)) / min(k, len(ranked))


def _reciprocal(ranked: Sequence[str], relevant: Sequence[str], k: int) -> float:
    return reciprocal_rank(ranked[:k], relevant)


_MEASURES: Final[Mapping[str, _Measure]] = {
    "P": precision_at,
    "R": recall_at,
    "MRR": _reciprocal,
}


@dataclass(frozen=True, slots=True)
class Ordered:
    """One question's notes in several orders.

    Attributes:
        relevant: The notes that should come first, at least one.
        orders: By name, the same notes in that order, best first.
    """

    group: str
    relevant: tuple[str, ...]
    orders: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Compared:
    """One measure of an order, compared with another order."""

    measure: str
    order: str
    difference: Difference


def compared(
    questions: Sequence[Ordered], clusters: NDArray[np.intp], *, first: str
) -> list[Compared]:
    """Compare precision, recall and MRR at 1, 3 and 5 of every order with `first`.

    The bootstrap resamples clusters, then questions within them, the same ones for all
    orders.
    """
    everything = np.ones(len(questions), np.bool_)
    names = [name for name in questions[0].orders if name != first]
    measures = [
        (f"{measure}@{k}", k, of) for measure, of in _MEASURES.items() for k in PLACES
    ]

    def values(order: str, k: int, of: _Measure) -> NDArray[np.float64]:
        return np.array([of(one.orders[order], one.relevant, k) for one in questions])

    labels, pairs = [], []
    for name in names:
        for label, k, of in measures:
            labels.append((label, name))
            pairs.append(
                (
                    mean(values(first, k, of), everything),
                    mean(values(name, k, of), everything),
                )
            )
    found = differences(pairs, clusters, within=True)
    return [
        Compared(label, name, difference)
        for (label, name), difference in zip(labels, found, strict=True)
    ]
