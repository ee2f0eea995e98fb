"""Directions of a tiny model of three blocks, made up, as values and as files."""

import numpy as np

from probes.cards import ProbeCard, ProbeFiles, ProbeKind
from probes.directions import (
    DirectionSet,
    DirectionSettings,
    TraitDirections,
    direction_files,
)

BLOCKS, WIDTH = 3, 32
_CARD = ProbeCard(
    kind=ProbeKind.DIRECTIONS,
    language_model="",
    language_model_name="tiny",
    form="",
    layer=None,
    part="",
    temperature=1.0,
    data_sha256="d" * 64,
    sizes={"true_statements": 10},
    settings={},
)


def made_directions(*, language_model: str = "0" * 64, seed: int = 0) -> DirectionSet:
    """Return random directions for `tiny_models.model`."""
    random = np.random.default_rng(seed)

    def trait() -> TraitDirections:
        vectors = random.normal(size=(BLOCKS, WIDTH))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return TraitDirections(
            vectors.astype(np.float32),
            random.normal(size=BLOCKS).astype(np.float32),
            random.uniform(0.5, 2, size=BLOCKS).astype(np.float32),
            (0.5, 0.75, 1.0),
        )

    return DirectionSet(language_model, trait(), trait(), (1, 2), (0, 1))


def direction_probe_files(directions: DirectionSet) -> ProbeFiles:
    """Return them as the registry keeps them."""
    return direction_files(directions, DirectionSettings(), _CARD)
