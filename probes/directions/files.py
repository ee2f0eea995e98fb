"""Directions as files, and back: arrays as safetensors, all else in the card."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from probes.cards import Json, ProbeCard, ProbeFiles, ProbeKind, card_bytes
from probes.directions.fitting import DirectionSettings
from probes.directions.sets import DirectionSet, TraitDirections
from probes.directions.statements import Trait

# Which form of prompt the pairs have; another one has other directions.
FORM: Final = "contrast-1"
_PARTS: Final = ("vectors", "middles", "halves")


def direction_files(
    directions: DirectionSet, settings: DirectionSettings, card: ProbeCard
) -> ProbeFiles:
    """Return fitted directions as files.

    Args:
        settings: What they were fitted with.
        card: What the directions do not know of themselves; the rest is filled in here.
    """
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
    """Return the directions for the model of that fingerprint."""
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
        raise ValueError(f"there are no {blocks} accuracies of {trait.value}")
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
        raise ValueError(f"{said!r} are no blocks of {blocks}")
    return layers
