"""Directions of a tiny model of three blocks, made up, as values and as files."""

from dataclasses import replace

import numpy as np

from probes.cards import ProbeFiles, ProbeKind
from probes.directions.sets import (
    DirectionSet,
    DirectionSettings,
    TraitDirections,
    blocks_between,
    direction_files,
)
from probes.language_model import WhiteBoxModel
from probes.language_model.second_pass import Passing
from probes.taps import Tap
from tests.probes.probe_files import _CARD

BLOCKS, WIDTH = 3, 32


def made_directions(
    *,
    language_model: str = "0" * 64,
    seed: int = 0,
    blocks: int = BLOCKS,
    width: int = WIDTH,
    steered: tuple[int, ...] = (1, 2),
    monitored: tuple[int, ...] = (0, 1),
) -> DirectionSet:
    """Return random directions, by default for `tiny_models.model`."""
    random = np.random.default_rng(seed)

    def trait() -> TraitDirections:
        vectors = random.normal(size=(blocks, width))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return TraitDirections(
            vectors.astype(np.float32),
            random.normal(size=blocks).astype(np.float32),
            random.uniform(0.5, 2, size=blocks).astype(np.float32),
            (0.75,) * blocks,
        )

    return DirectionSet(language_model, trait(), trait(), steered, monitored)


def direction_probe_files(directions: DirectionSet) -> ProbeFiles:
    """Return them as the registry keeps them."""
    card = replace(_CARD, kind=ProbeKind.DIRECTIONS, form="")
    return direction_files(directions, DirectionSettings(), card)


def random_directions(model: WhiteBoxModel, *, seed: int = 0) -> DirectionSet:
    """Return random directions for a model, of its blocks and its width."""
    tap = Tap(0)
    (read,) = model.read_activations([Passing((0,), 0, 1)], [tap])
    settings = DirectionSettings()
    return made_directions(
        language_model=model.fingerprint,
        seed=seed,
        blocks=model.blocks,
        width=read[tap].shape[1],
        steered=blocks_between(model.blocks, settings.steered),
        monitored=blocks_between(model.blocks, settings.monitored),
    )
