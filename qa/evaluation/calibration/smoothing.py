"""How likely each answer is wrong by its signals: a steadier hand for ordering candidates.

Of thousands of combinations the one with the fewest errors on some hundred answers was
mostly lucky. A model of few parameters is not, though it may be wrong in shape; half of
each orders better than either. No promise rests on it: what is tested are counts.
"""

from collections.abc import Mapping

import numpy as np

from qa.pipeline.scores import Score

from .decisions import FloatArray, Table

_RIDGE = 1.0
_STEPS = 25


def smoothed_errors(table: Table, scores: Mapping[str, Score]) -> FloatArray:
    """Return for each row the mean of its label (1 is wrong) and what its signals say.

    The latter is a logistic regression on the standardised signals, with a ridge (Hoerl
    and Kennard 1970; le Cessie and van Houwelingen 1992) and a term for a missing value.
    """
    features = np.column_stack([np.ones(len(table)), *_features(table, scores)])
    wrong = table.wrong.astype(np.float64)
    ridge = np.full(features.shape[1], _RIDGE)
    ridge[0] = 1e-3  # so that it is solvable where nothing or everything is wrong
    weights = np.zeros(features.shape[1])
    for _ in range(_STEPS):
        said = _logistic(features @ weights)
        slope = features.T @ (said - wrong) + ridge * weights
        curve = (features.T * (said * (1 - said))) @ features + np.diag(ridge)
        step = np.linalg.solve(curve, slope)
        weights -= np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-6:
            break
    return (wrong + _logistic(features @ weights)) / 2


def _features(table: Table, scores: Mapping[str, Score]) -> list[FloatArray]:
    columns = []
    for name in scores:
        values = table.values[name]
        missing = np.isnan(values)
        if missing.all():
            continue
        spread = np.nanstd(values)
        filled = np.where(missing, np.nanmean(values), values)
        columns.append((filled - filled.mean()) / (spread if spread > 0 else 1.0))
        if missing.any():
            columns.append(missing.astype(np.float64))
    return columns


def _logistic(values: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -30, 30))), np.float64)
