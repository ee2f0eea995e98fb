"""Variants of the probe: other blocks, less evidence, fewer labelled answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from probes.taps import Part, Tap
from qa.inference.white_box import default_tap, middle_tap
from qa.training.cross_fitting import Fit, Rows, Scorer, Scores, out_of_fold

from .measures import auroc, masking
from .scores import Examined

# The threshold that the paper's Tables 2 and 4 have in common.
_THRESHOLD = 0.5
_STEP = 1000
_MAX_STEPS = 8


@dataclass(frozen=True, slots=True, order=True)
class Variant:
    """Where a probe reads, and how many pieces of evidence are given (None: all)."""

    place: Tap
    pieces: int | None


def variants_of(blocks: int) -> list[Variant]:
    """Return the default, middle and last block, and the middle one's feed-forward.

    The paper's layer 16 of 32 is the output of the sixteenth block: 15, counted from 0.
    """
    middle, last = middle_tap(blocks), Tap(blocks - 1)
    places = (default_tap(blocks), middle, last, Tap(middle.layer, Part.FFN))
    # In a model with few blocks, two of these places may coincide.
    return [
        Variant(place, pieces)
        for place in dict.fromkeys(places)
        for pieces in (None, 3, 1)
    ]


def variant_part(
    examined: Examined, variant: Variant, scores: Scores
) -> dict[str, Any]:
    """Return a variant's AUROC, and what it masks at a threshold of 0.5."""
    (masked,) = masking(examined, scores, (_THRESHOLD,))
    return {
        "layer": variant.place.layer,
        "part": variant.place.part,
        "pieces": variant.pieces,
        **auroc(examined, scores),
        **masked,
    }


def sizes_of(examined: Examined) -> list[int]:
    """Return the training sizes: at most eight multiples of a thousand, and all.

    Folds differ in size; the last number is the size of the smallest training set.
    """
    _, counts = np.unique(examined.folds, return_counts=True)
    most = len(examined.answers) - int(counts.max())
    step = _STEP * max(1, -(-most // (_STEP * _MAX_STEPS)))
    return [*range(step, most, step), most]


def on_some(fit_on: Fit, count: int, seed: int) -> Fit:
    """Return a fit on only `count` of its rows, drawn from all articles.

    A larger count includes the rows of a smaller one.
    """

    def fit_some(rows: Rows) -> Scorer:
        drawn = np.random.default_rng(seed).permutation(rows)[:count]
        return fit_on(np.sort(drawn))

    return fit_some


def learning(
    examined: Examined, fits: dict[str, Fit], sizes: Sequence[int], seed: int
) -> list[dict[str, Any]]:
    """Return each probe's AUROC by the number of labelled answers it is fitted on.

    They are drawn from all articles of the training folds, and each size includes the
    answers of the one before.
    """
    return [
        {
            "answers": size,
            "scores": {
                name: auroc(
                    examined, out_of_fold(on_some(fit, size, seed), examined.folds)
                )
                for name, fit in fits.items()
            },
        }
        for size in sizes
    ]
