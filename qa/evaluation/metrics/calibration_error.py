"""Calibration of probabilities: of the answers at 0.8, are 80 % right?

ECE: Naeini, Cooper and Hauskrecht (AAAI 2015). Bins of equal mass: Nguyen and O'Connor
(EMNLP 2015). Brier score: Brier, Monthly Weather Review 78 (1950).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

BINS = 10


class Binning(Enum):
    EQUAL_WIDTH = "equal_width"
    EQUAL_MASS = "equal_mass"


@dataclass(frozen=True, slots=True)
class Bin:
    low: float
    high: float
    count: int
    probability: float
    accuracy: float


def reliability(
    probabilities: Sequence[float],
    right: Sequence[bool],
    *,
    binning: Binning = Binning.EQUAL_WIDTH,
    bins: int = BINS,
) -> tuple[Bin, ...]:
    """Return the non-empty bins by increasing probability.

    Equal width: bin i of n is [i/n, (i+1)/n); the last one includes its end. Equal
    mass: by rank; equal probabilities stay together, so bins may differ in size.
    """
    values, labels = _checked(probabilities, right)
    if bins < 1:
        raise ValueError(f"bins must be at least 1, not {bins}")
    places = _places(values, binning)
    numbers = np.minimum((places * bins).astype(np.int64), bins - 1)
    return tuple(
        Bin(
            low=float(values[inside].min()),
            high=float(values[inside].max()),
            count=int(inside.sum()),
            probability=float(values[inside].mean()),
            accuracy=float(labels[inside].mean()),
        )
        for inside in (numbers == number for number in np.unique(numbers))
    )


def expected_calibration_error(bins: Sequence[Bin]) -> float | None:
    """Return the mean gap of accuracy and probability, in [0, 1]; None if no bins."""
    total = sum(one.count for one in bins)
    if not total:
        return None
    return sum(one.count * abs(one.accuracy - one.probability) for one in bins) / total


def brier_score(probabilities: Sequence[float], right: Sequence[bool]) -> float | None:
    """Return the mean squared error from 1 (right) or 0, in [0, 1]; None if empty."""
    values, labels = _checked(probabilities, right)
    return float(((values - labels) ** 2).mean()) if len(values) else None


def _places(values: NDArray[np.float64], binning: Binning) -> NDArray[np.float64]:
    if binning is Binning.EQUAL_WIDTH or not len(values):
        return values
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle: NDArray[np.float64] = (np.cumsum(counts) - counts / 2) / len(values)
    return middle[inverse]


def _checked(
    probabilities: Sequence[float], right: Sequence[bool]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    values = np.asarray(probabilities, dtype=np.float64)
    labels = np.asarray(right, dtype=np.float64)
    if len(values) != len(labels):
        raise ValueError(
            f"{len(values)} probabilities and {len(labels)} labels do not match"
        )
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError("a probability is outside [0, 1]")
    return values, labels
