"""A model's directions of honesty and confidence, to steer and to monitor by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from probes.taps import Activations, Tap


@dataclass(frozen=True, slots=True, eq=False)
class TraitDirections:
    """One trait's direction in every block's output.

    Attributes:
        vectors: float32 of shape (blocks, width), each of unit length, towards the
            positive side.
        middles: float32 of shape (blocks,): halfway between both sides' mean projections.
        halves: float32 of shape (blocks,): half of the way between them, above 0.
        accuracies: Of each block, the share of held-out pairs whose positive text lies
            further along, in [0, 1].
    """

    vectors: NDArray[np.float32]
    middles: NDArray[np.float32]
    halves: NDArray[np.float32]
    accuracies: tuple[float, ...]

    def along(self, layer: int, activations: Activations) -> NDArray[np.float64]:
        """Return where activations lie between the sides: +1 the positive one, -1 the other.

        Args:
            layer: The block that they were read from.
            activations: Shape (..., width).

        Returns:
            Shape (...,); 0 is halfway, and there is no bound.
        """
        vector = self.vectors[layer].astype(np.float64)
        along: NDArray[np.float64] = activations.astype(np.float64) @ vector
        return (along - float(self.middles[layer])) / float(self.halves[layer])


@dataclass(frozen=True, slots=True, eq=False)
class DirectionSet:
    """Both traits' directions, and which blocks they are used in.

    Attributes:
        language_model: Fingerprint of the model whose activations they were fitted on;
            they never serve another.
        steered: Blocks that are moved along honesty, 0-based, ascending.
        monitored: Blocks whose outputs tell confidence.
    """

    language_model: str
    honesty: TraitDirections
    confidence: TraitDirections
    steered: tuple[int, ...]
    monitored: tuple[int, ...]

    @property
    def blocks(self) -> int:
        """How many blocks the model has."""
        return len(self.honesty.vectors)

    @property
    def width(self) -> int:
        """Numbers a position."""
        return int(self.honesty.vectors.shape[1])

    @property
    def taps(self) -> tuple[Tap, ...]:
        """Where the monitor reads."""
        return tuple(Tap(layer) for layer in self.monitored)

    def steering(self, strength: float) -> dict[int, torch.Tensor]:
        """Return what is added to the blocks' outputs; nothing for a strength of 0.

        Args:
            strength: 1 moves each block's output by half of what the two instructions
                differ by there; below 0 away from honesty.

        References:
            Liu et al., "CtrlA" (2024), equation 1, whose coefficient is the length added
            to every block; lengths of activations differ from model to model by orders
            of magnitude, so that here it is in the unit of the fit.
        """
        if strength == 0:
            return {}
        return {
            layer: torch.from_numpy(
                self.honesty.vectors[layer]
                * np.float32(strength * self.honesty.halves[layer])
            )
            for layer in self.steered
        }

    def confidence_of(
        self, activations: Mapping[Tap, Activations]
    ) -> NDArray[np.float64]:
        """Return how confident each position is: the mean over the monitored blocks.

        Args:
            activations: For each of `taps`, shape (positions, width); none at all where
                there is no position.

        Returns:
            Shape (positions,): 1 as under the confident instruction, -1 as under the
            unconfident one.

        References:
            Liu et al., "CtrlA" (2024), equation 2, without the threshold and the scale.
        """
        if not activations:
            return np.zeros(0)
        mean: NDArray[np.float64] = np.mean(
            [self.confidence.along(t.layer, activations[t]) for t in self.taps], axis=0
        )
        return mean


def blocks_between(blocks: int, shares: Sequence[float]) -> tuple[int, ...]:
    """Return the blocks from one share of the depth to another, at least one.

    Args:
        blocks: How many there are.
        shares: Where the first begins and the last ends, in [0, 1].
    """
    first, end = (round(share * blocks) for share in shares)
    first = min(first, blocks - 1)
    return tuple(range(first, max(first + 1, end)))
