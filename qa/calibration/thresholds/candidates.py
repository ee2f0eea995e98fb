"""The combinations of thresholds to try, and the order in which they are tested."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np

from qa.evaluation.decisions import FloatArray, IntArray, Table
from qa.exceptions import CalibrationError
from qa.pipeline.gates import THRESHOLDED
from qa.pipeline.policy import Policy
from qa.pipeline.rules import SignalRow, Trust

from .values import p_values

# More combinations take longer and have not yielded better ones.
_MAX_COMBINATIONS = 8_000
_MAX_OF_ONE = 400
_MAX_FINE = 3  # up to so many signals, one joint grid is fine enough
_DECIMALS = 6


def chosen_scores(table: Table, signals: Sequence[str]) -> dict[str, SignalRow]:
    for name in signals:
        if name not in THRESHOLDED:
            known = ", ".join(THRESHOLDED)
            raise CalibrationError(
                f"The signal {name!r} has no threshold; these have one: {known}."
            )
    measured = {
        name: THRESHOLDED[name]
        for name in signals
        if not np.isnan(table.values[name]).all()
    }
    if not measured:
        named = ", ".join(signals) or "none is named"
        raise CalibrationError(
            f"No labelled answer has a signal to calibrate ({named})."
        )
    return measured


def candidates(
    table: Table, base: Policy, scores: Mapping[str, SignalRow]
) -> list[Policy]:
    """Return a copy of `base` for every combination of thresholds worth trying.

    Thresholds lie at quantiles of the signals in `table` and at the most permissive end
    of their range. With many signals the joint grid is coarse, so each pair and each
    single signal is also tried in finer steps while the others let everything pass.
    """
    tried: dict[tuple[float, ...], None] = {}
    counts = (len(scores), 2, 1) if len(scores) > _MAX_FINE else (len(scores),)
    for count in counts:
        chosen = [set(names) for names in combinations(scores, count)]
        each = _MAX_COMBINATIONS / len(chosen)
        size = min(_MAX_OF_ONE, int(each ** (1 / count)))
        axes = {
            name: thresholds_of(table.values[name], score, size)
            for name, score in scores.items()
        }
        for names in chosen:
            lines = (
                axis if name in names else axis[-1:] for name, axis in axes.items()
            )
            tried.update(dict.fromkeys(product(*lines)))
    fields = [score.threshold for score in scores.values()]
    return [
        with_thresholds(base, dict(zip(fields, values, strict=True)), scores)
        for values in tried
    ]


def with_thresholds(
    base: Policy, thresholds: Mapping[str, float], scores: Mapping[str, SignalRow]
) -> Policy:
    changes: dict[str, Any] = dict(thresholds)
    changes |= {score.switch: True for score in scores.values()}
    # Evidence near enough to answer from must not count as unrelated.
    changes["horizon"] = max(base.horizon, thresholds.get("alpha", base.alpha))
    return replace(base, **changes)


def thresholds_of(column: FloatArray, score: SignalRow, size: int) -> list[float]:
    low, high = score.limits
    measured = column[~np.isnan(column)]
    shares = np.linspace(0, 1, max(size - 1, 1))
    inside: list[float] = []
    if len(measured):
        inside = np.quantile(measured, shares, method="nearest").tolist()
    lax = high if score.trust is Trust.LOW else low
    rounded = np.clip(np.round([*inside, lax], _DECIMALS), low, high)
    found: list[float] = np.unique(rounded).tolist()
    return found if score.trust is Trust.LOW else found[::-1]


def testing_order(
    shown: IntArray, wrong: FloatArray, *, epsilon: float, scale: float
) -> IntArray:
    """Return the candidates to test, in order, from their counts on the learning part.

    They are on the Pareto frontier (no candidate shows as many with fewer wrong): first
    the one with the smallest p-value, then those that show more, by p-value (Pareto
    testing: Laufer-Goldshtein et al. 2023, arXiv 2210.07913). The test part has `scale`
    times as many answers.
    """
    # Of equal candidates keep the first, which is the strictest.
    by_shown = np.lexsort((np.arange(len(shown)), wrong, -shown))
    best_so_far = np.minimum.accumulate(
        np.concatenate(([np.inf], wrong[by_shown][:-1]))
    )
    frontier = by_shown[wrong[by_shown] < best_so_far]
    p = p_values(wrong[frontier] * scale, shown[frontier] * scale, epsilon)
    by_p = frontier[np.lexsort((-shown[frontier], p))]
    most = np.maximum.accumulate(np.concatenate(([0], shown[by_p][:-1])))
    return by_p[shown[by_p] > most]
