"""Fitting honesty and confidence directions of every block from contrasting texts."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from probes.directions.contrast import Contrast, Trait, draw_contrasts
from probes.directions.fitting import LEAST_PAIRS, Method, fit_direction
from probes.directions.sets import DirectionSet, TraitDirections, blocks_between
from probes.exceptions import TooFewLabelsError
from probes.language_model.model import WhiteBoxModel
from probes.language_model.second_pass import Passing
from probes.language_model.taps import Activations, Tap

Progress = Callable[[str, int, int], None]

# Texts read between two reports of progress.
_PAIRS_AT_ONCE: Final = 64


@dataclass(frozen=True, slots=True)
class DirectionSettings:
    """How directions are fitted.

    Attributes:
        pairs: How many pairs a trait is fitted on; the paper has 1,024 texts.
        held_out: Share of the statements that the accuracies are measured on, no part
            of which is fitted on.
        method: Mean difference, or principal component of both signs.
        steered: Which share of the depth is steered. The paper's release counts from the
            top: of 32 blocks it steers 15 to 27,
        monitored: and monitors 8 to 22.
        seed: Of what is held out and of which pairs are drawn.
    """

    pairs: int = 512
    held_out: float = 0.25
    method: Method = Method.MEAN
    steered: tuple[float, float] = (15 / 32, 28 / 32)
    monitored: tuple[float, float] = (8 / 32, 23 / 32)
    seed: int = 0


def fit_direction_set(
    model: WhiteBoxModel,
    statements: Mapping[Trait, Sequence[str]],
    settings: DirectionSettings,
    *,
    on_progress: Progress | None = None,
) -> DirectionSet:
    """Return the directions of both traits in all blocks.

    Args:
        model: The model that will be steered and monitored.
        statements: For each trait, whatever is said under both of its instructions.
        on_progress: Told (trait, pairs read, pairs in all).

    Raises:
        TooFewLabelsError: A trait has too few statements.
        TooManyTokensError: A statement does not fit the model's context.
    """
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
            (mixed[:held], max(LEAST_PAIRS, settings.pairs // 4)),
        )
    ]
    if min(map(len, drawn)) < LEAST_PAIRS:
        msg = (
            f"{len(statements)} statements are too few for {trait.value}: of "
            f"{settings.held_out:.0%} that are held out, {LEAST_PAIRS} pairs are wanted."
        )
        raise TooFewLabelsError(msg)

    def told(done: int) -> None:
        if on_progress:
            on_progress(trait.value, done, sum(map(len, drawn)))

    (up, down), (held_up, held_down) = _read(model, drawn, told)
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
    told: Callable[[int], None],
) -> list[tuple[Activations, Activations]]:
    """Return each part's states at the last token, two of (pairs, blocks, width)."""
    found, done = [], 0
    for part in drawn:
        sides: list[Activations] = []
        for first in range(0, len(part), _PAIRS_AT_ONCE):
            some = part[first : first + _PAIRS_AT_ONCE]
            texts = [ids for pair in some for ids in (pair.positive, pair.negative)]
            sides.append(_last_states(model, texts))
            told(done := done + len(some))
        both = np.concatenate(sides)
        found.append((both[::2], both[1::2]))
    return found


def _last_states(model: WhiteBoxModel, texts: Sequence[tuple[int, ...]]) -> Activations:
    """Return float32 of shape (texts, blocks, width)."""
    taps = [Tap(layer) for layer in range(model.blocks)]
    passings = [Passing(ids, len(ids) - 1, len(ids)) for ids in texts]
    read = model.read_activations(passings, taps)
    return np.stack([np.concatenate([row[tap] for tap in taps]) for row in read])
