"""A model's directions of honesty and confidence, for steering and monitoring.

As files: arrays as safetensors, everything else in the card.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from probes.cards import Json, ProbeCard, ProbeFiles, ProbeKind, card_bytes
from probes.directions.statements import Trait
from probes.taps import Activations, Tap

# The prompt form of the pairs; another form has other directions.
FORM: Final = "contrast-1"
_PARTS: Final = ("vectors", "middles", "halves")


class Method(StrEnum):
    MEAN = "mean"
    PRINCIPAL = "principal"


@dataclass(frozen=True, slots=True)
class DirectionSettings:
    """How directions are fitted.

    Attributes:
        held_out: Share of the statements that the accuracies are measured on and that
            are not fitted on.
        steered: Range of the depth that is steered, as shares. The paper's release
            counts from the top: of 32 blocks it steers 15 to 27.
        monitored: Range of the depth that is monitored: there 8 to 22.
    """

    pairs: int = 512
    held_out: float = 0.25
    method: Method = Method.MEAN
    steered: tuple[float, float] = (15 / 32, 28 / 32)
    monitored: tuple[float, float] = (8 / 32, 23 / 32)
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class TraitDirections:
    """One trait's direction in every block's output.

    Attributes:
        vectors: Shape (blocks, width), of unit length, towards the positive side.
        middles: Shape (blocks,): halfway between both sides' mean projections.
        halves: Shape (blocks,): half the distance between them, above 0.
        accuracies: For each block, the share of held-out pairs whose positive text lies
            further along, in [0, 1].
    """

    vectors: NDArray[np.float32]
    middles: NDArray[np.float32]
    halves: NDArray[np.float32]
    accuracies: tuple[float, ...]

    def along(self, layer: int, activations: Activations) -> NDArray[np.float64]:
        """Return the place of (..., width): +1 is the positive side, -1 the other."""
        vector = self.vectors[layer].astype(np.float64)
        along: NDArray[np.float64] = activations.astype(np.float64) @ vector
        return (along - float(self.middles[layer])) / float(self.halves[layer])


@dataclass(frozen=True, slots=True, eq=False)
class DirectionSet:
    """Both traits' directions, and which blocks (0-based) they are used in."""

    language_model: str
    honesty: TraitDirections
    confidence: TraitDirections
    steered: tuple[int, ...]
    monitored: tuple[int, ...]

    @property
    def blocks(self) -> int:
        return len(self.honesty.vectors)

    @property
    def width(self) -> int:
        return int(self.honesty.vectors.shape[1])

    @property
    def taps(self) -> tuple[Tap, ...]:
        return tuple(Tap(layer) for layer in self.monitored)

    def steering(self, strength: float) -> dict[int, torch.Tensor]:
        """Return what is added to the blocks' outputs; empty for a strength of 0.

        A strength of 1 moves each block's output by half of the difference that the two
        instructions make there; below 0 away from honesty. Liu et al., "CtrlA" (2024),
        equation 1, but in units of the fit: lengths of activations differ between
        models by orders of magnitude.
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
        """Return the mean over monitored blocks, (positions, width) to (positions,).

        1 as under the confident instruction, -1 as under the unconfident one. Liu et
        al., "CtrlA" (2024), equation 2, without the threshold and the scale.
        """
        if not activations:
            return np.zeros(0)
        mean: NDArray[np.float64] = np.mean(
            [self.confidence.along(t.layer, activations[t]) for t in self.taps], axis=0
        )
        return mean


def blocks_between(blocks: int, shares: Sequence[float]) -> tuple[int, ...]:
    """Return the blocks between two shares of the depth, at least one."""
    first, end = (round(share * blocks) for share in shares)
    first = min(first, blocks - 1)
    return tuple(range(first, max(first + 1, end)))


def direction_files(
    directions: DirectionSet, settings: DirectionSettings, card: ProbeCard
) -> ProbeFiles:
    traits = {
        Trait.HONESTY: directions.honesty,
        Trait.CONFIDENCE: directions.confidence,
    }
    weights = save_arrays(
        {
            f"{trait.value}.{part}": np.ascontiguousarray(getattr(fitted, part))
            for trait, fitted in traits.items()
            for part in _PARTS
        }
    )
    chosen: dict[str, Json] = {
        "pairs": settings.pairs,
        "held_out": settings.held_out,
        "method": settings.method.value,
        "seed": settings.seed,
        "steered": [*directions.steered],
        "monitored": [*directions.monitored],
    }
    accuracies: dict[str, Json] = {
        f"{trait.value}_accuracies": [*fitted.accuracies]
        for trait, fitted in traits.items()
    }
    filled = replace(
        card,
        kind=ProbeKind.DIRECTIONS,
        language_model=directions.language_model,
        form=FORM,
        layer=None,
        part="",
        temperature=1.0,
        sizes={**card.sizes, "blocks": directions.blocks, "width": directions.width},
        settings=chosen,
        metrics={**card.metrics, **accuracies},
    )
    return ProbeFiles("directions", card_bytes(filled, weights), weights)


def directions_from(files: ProbeFiles, *, language_model: str) -> DirectionSet:
    card = files.checked(language_model=language_model)
    if card.kind is not ProbeKind.DIRECTIONS:
        raise files.damaged(f"a {card.kind.value} probe holds no directions")
    try:
        arrays = load_arrays(files.weights)
        traits = {trait: _trait(arrays, card, trait) for trait in Trait}
        blocks = card.sizes["blocks"]
        return DirectionSet(
            card.language_model,
            traits[Trait.HONESTY],
            traits[Trait.CONFIDENCE],
            steered=_layers(card.settings["steered"], blocks),
            monitored=_layers(card.settings["monitored"], blocks),
        )
    except (KeyError, SafetensorError, TypeError, ValueError) as error:
        raise files.damaged(f"{type(error).__name__}: {error}") from error


def _trait(
    arrays: Mapping[str, NDArray[np.float32]], card: ProbeCard, trait: Trait
) -> TraitDirections:
    vectors, middles, halves = (arrays[f"{trait.value}.{part}"] for part in _PARTS)
    blocks, width = card.sizes["blocks"], card.sizes["width"]
    accuracies = card.metrics[f"{trait.value}_accuracies"]
    shapes = [vectors.shape, middles.shape, halves.shape]
    if blocks < 1 or shapes != [(blocks, width), (blocks,), (blocks,)]:
        raise ValueError(f"the arrays of {trait.value} have the shapes {shapes}")
    if not all(np.isfinite(array).all() for array in (vectors, middles, halves)):
        raise ValueError(f"a number of {trait.value} is not finite")
    if not (halves > 0).all():
        raise ValueError(f"the sides of {trait.value} do not differ in every block")
    if not isinstance(accuracies, list) or len(accuracies) != blocks:
        raise ValueError(f"{trait.value} does not have {blocks} accuracies")
    return TraitDirections(
        vectors.astype(np.float32),
        middles.astype(np.float32),
        halves.astype(np.float32),
        tuple(float(str(value)) for value in accuracies),
    )


def _layers(said: Json, blocks: int) -> tuple[int, ...]:
    found = said if isinstance(said, list) else []
    layers = tuple(layer for layer in found if isinstance(layer, int))
    if not layers or layers != tuple(found) or not all(0 <= i < blocks for i in layers):
        raise ValueError(f"{said!r} are not blocks from 0 to {blocks - 1}")
    return layers
