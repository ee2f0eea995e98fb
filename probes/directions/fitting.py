"""Fit a direction from pairs of activations that differ in one thing.

The mean of the differences points along what the pairs differ by. Principal components
find the same if both signs of every difference are stacked; centring would remove it.

References:
    Zou et al., "Representation engineering" (2023), section 3.1; Liu et al., "CtrlA:
    adaptive retrieval-augmented generation via inherent control" (2024), equations 1 to
    3.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from probes.directions.sets import (
    DirectionSet,
    DirectionSettings,
    Method,
    TraitDirections,
    blocks_between,
)
from probes.directions.statements import Contrast, Trait, draw_contrasts
from probes.exceptions import TooFewLabelsError
from probes.language_model.model import WhiteBoxModel
from probes.language_model.second_pass import Passing
from probes.taps import Activations, Tap

MIN_PAIRS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Direction:
    """The direction in which two sides differ in one block's activations.

    Attributes:
        vector: float32 of shape (width,), of unit length, towards the positive side.
        middle: Halfway between both sides' mean projections, so that a projection minus
            it is positive on the positive side of the pairs it was fitted on.
        accuracy: Share of pairs whose positive text lies further along it, in [0, 1].
    """

    vector: NDArray[np.float32]
    middle: float
    accuracy: float

    def project(self, activations: Activations) -> NDArray[np.float64]:
        """Return positions of (..., width) along it from the middle, shape (...,)."""
        along: NDArray[np.float64] = activations.astype(
            np.float64
        ) @ self.vector.astype(np.float64)
        return along - self.middle


def fit_direction(
    positive: Activations, negative: Activations, *, method: Method = Method.MEAN
) -> Direction:
    """Return the direction from the negative to the positive side, (pairs, width) each.

    Raises:
        ValueError: The shapes differ, or the sides do not differ at all.
    """
    if positive.shape != negative.shape or positive.ndim != 2:
        raise ValueError(
            f"The sides have the shapes {positive.shape} and {negative.shape}."
        )
    if len(positive) < MIN_PAIRS:
        raise TooFewLabelsError(
            f"{len(positive)} pairs are too few; give at least {MIN_PAIRS}."
        )
    ups, downs = positive.astype(np.float64), negative.astype(np.float64)
    differences = ups - downs
    vector = (
        differences.mean(axis=0) if method is Method.MEAN else _principal(differences)
    )
    length = np.linalg.norm(vector)
    if not length > 0:
        raise ValueError("Both sides are alike: there is no direction between them.")
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

    Their mean is zero by construction, so nothing is centred away.
    """
    _, _, rows = np.linalg.svd(differences, full_matrices=False)
    first: NDArray[np.float64] = rows[0]
    return first


Progress = Callable[[str, int, int], None]

# Pairs read between two progress reports.
_PAIRS_AT_ONCE: Final = 64


def fit_direction_set(
    model: WhiteBoxModel,
    statements: Mapping[Trait, Sequence[str]],
    settings: DirectionSettings,
    *,
    on_progress: Progress | None = None,
) -> DirectionSet:
    found = {
        trait: _fit(model, statements[trait], trait, settings, on_progress)
        for trait in Trait
    }
    return DirectionSet(
        language_model=model.fingerprint,
        honesty=found[Trait.HONESTY],
        confidence=found[Trait.CONFIDENCE],
        steered=blocks_between(model.blocks, settings.steered),
        monitored=blocks_between(model.blocks, settings.monitored),
    )


def _fit(
    model: WhiteBoxModel,
    statements: Sequence[str],
    trait: Trait,
    settings: DirectionSettings,
    on_progress: Progress | None,
) -> TraitDirections:
    mixed = random.Random(settings.seed).sample(statements, len(statements))  # noqa: S311  # no secret
    held = round(len(mixed) * settings.held_out)
    drawn = [
        draw_contrasts(model.tokens, part, trait, count=count, seed=settings.seed)
        for part, count in (
            (mixed[held:], settings.pairs),
            (mixed[:held], max(MIN_PAIRS, settings.pairs // 4)),
        )
    ]
    if min(map(len, drawn)) < MIN_PAIRS:
        raise TooFewLabelsError(
            f"{len(statements)} statements are too few for {trait.value}: the "
            f"{settings.held_out:.0%} held out must give at least {MIN_PAIRS} pairs."
        )

    def report(done: int) -> None:
        if on_progress:
            on_progress(trait.value, done, sum(map(len, drawn)))

    (up, down), (held_up, held_down) = _read(model, drawn, report)
    directions = [
        fit_direction(up[:, layer], down[:, layer], method=settings.method)
        for layer in range(model.blocks)
    ]
    return TraitDirections(
        vectors=np.stack([each.vector for each in directions]),
        middles=np.array([each.middle for each in directions], np.float32),
        halves=np.array(
            [each.project(up[:, i]).mean() for i, each in enumerate(directions)],
            np.float32,
        ),
        accuracies=tuple(
            float(np.mean(each.project(held_up[:, i]) > each.project(held_down[:, i])))
            for i, each in enumerate(directions)
        ),
    )


def _read(
    model: WhiteBoxModel,
    drawn: Sequence[Sequence[Contrast]],
    report: Callable[[int], None],
) -> list[tuple[Activations, Activations]]:
    """Return each part's states at the last token, two of (pairs, blocks, width)."""
    found, done = [], 0
    for part in drawn:
        sides: list[Activations] = []
        for first in range(0, len(part), _PAIRS_AT_ONCE):
            some = part[first : first + _PAIRS_AT_ONCE]
            texts = [ids for pair in some for ids in (pair.positive, pair.negative)]
            sides.append(_last_states(model, texts))
            report(done := done + len(some))
        both = np.concatenate(sides)
        found.append((both[::2], both[1::2]))
    return found


def _last_states(model: WhiteBoxModel, texts: Sequence[tuple[int, ...]]) -> Activations:
    """Return float32 of shape (texts, blocks, width)."""
    taps = [Tap(layer) for layer in range(model.blocks)]
    passings = [Passing(ids, len(ids) - 1, len(ids)) for ids in texts]
    read = model.read_activations(passings, taps)
    return np.stack([np.concatenate([row[tap] for tap in taps]) for row in read])
