"""Fitting a direction from pairs of activations that differ in one thing.

The pairs are read from one statement under two contrasting instructions. The mean of the
differences points along what they differ by. Principal components find the same where
both signs of every difference are stacked; without that, centring takes the mean away,
which is the very thing that is looked for.

References:
    Zou et al., "Representation engineering" (2023), section 3.1; Liu et al., "CtrlA:
    adaptive retrieval-augmented generation via inherent control" (2024), equations 1 to 3.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from probes.exceptions import TooFewLabelsError
from probes.language_model.taps import Activations

LEAST_PAIRS = 8


class Method(StrEnum):
    """How a direction is taken from differences."""

    MEAN = "mean"
    PRINCIPAL = "principal"


@dataclass(frozen=True, slots=True, eq=False)
class Direction:
    """What one block's activations differ by.

    Attributes:
        vector: float32 of shape (width,), of unit length, towards the positive side.
        middle: Halfway between both sides' mean projections; so a projection less the
            middle is positive on the positive side of the pairs it was fitted on.
        accuracy: Share of pairs whose positive text lies further along it, in [0, 1].
    """

    vector: NDArray[np.float32]
    middle: float
    accuracy: float

    def project(self, activations: Activations) -> NDArray[np.float64]:
        """Return how far each position lies along it, from the middle on.

        Args:
            activations: Shape (..., width).

        Returns:
            Shape (...,), in the activations' own unit.
        """
        along: NDArray[np.float64] = activations.astype(
            np.float64
        ) @ self.vector.astype(np.float64)
        return along - self.middle


def fit_direction(
    positive: Activations, negative: Activations, *, method: Method = Method.MEAN
) -> Direction:
    """Return the direction from the negative to the positive side.

    Args:
        positive: Shape (pairs, width).
        negative: The same pairs' other side, same shape.

    Raises:
        ValueError: The shapes differ, or the sides do not differ at all.
        TooFewLabelsError: There are fewer than `LEAST_PAIRS` pairs.
    """
    if positive.shape != negative.shape or positive.ndim != 2:
        msg = f"The sides have the shapes {positive.shape} and {negative.shape}."
        raise ValueError(msg)
    if len(positive) < LEAST_PAIRS:
        msg = f"{len(positive)} pairs are too few; give at least {LEAST_PAIRS}."
        raise TooFewLabelsError(msg)
    ups, downs = positive.astype(np.float64), negative.astype(np.float64)
    differences = ups - downs
    vector = (
        differences.mean(axis=0) if method is Method.MEAN else _principal(differences)
    )
    length = np.linalg.norm(vector)
    if not length > 0:
        msg = "Both sides are alike: there is no direction between them."
        raise ValueError(msg)
    vector = vector / length
    if (differences @ vector).mean() < 0:
        vector = -vector
    along_up, along_down = ups @ vector, downs @ vector
    return Direction(
        vector=vector.astype(np.float32),
        middle=float(along_up.mean() + along_down.mean()) / 2,
        accuracy=float(np.mean(along_up > along_down)),
    )


def _principal(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the first principal component of the differences with both signs.

    Their mean is zero by construction, so nothing is centred away: it is the first right
    singular vector of the differences as they are.
    """
    _, _, rows = np.linalg.svd(differences, full_matrices=False)
    first: NDArray[np.float64] = rows[0]
    return first
