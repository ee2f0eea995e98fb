"""What a threshold on a confidence shows and what it masks (the paper's table 2)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from qa.evaluation.metrics.intervals import Statistic, bootstrap, mean, share

from .areas import value_of
from .folds import Scores
from .values import Examined

THRESHOLDS = tuple(step / 10 for step in range(10))


def masking(
    examined: Examined,
    confidence: Scores,
    thresholds: Sequence[float] = THRESHOLDS,
) -> list[dict[str, Any]]:
    """Return for each threshold what became of the answers, every figure with interval.

    An answer is displayed if its confidence is at least the threshold. ROUGE-L is over
    the answers that have a reference; questions without an answer have none.
    """
    statistics = [_row(examined, confidence, threshold) for threshold in thresholds]
    flat = [one for row in statistics for one in row.values()]
    intervals = iter(bootstrap(flat, examined.clusters, within=True))
    return [
        {"threshold": threshold}
        | {
            name: {
                "value": value_of(statistic, examined),
                "bootstrap_95": next(intervals),
            }
            for name, statistic in row.items()
        }
        for threshold, row in zip(thresholds, statistics, strict=True)
    ]


def _row(
    examined: Examined, confidence: Scores, threshold: float
) -> dict[str, Statistic]:
    shown = confidence >= threshold
    rouge, is_known = examined.rouge, ~np.isnan(examined.rouge)
    return {
        "precision": share(examined.right, shown),
        "recall": share(shown, examined.right),
        "rouge_displayed": mean(rouge, shown & is_known),
        "rouge_masked": mean(rouge, ~shown & is_known),
        "masked": share(~shown, examined.everything),
        "masked_right": share(examined.right, ~shown),
    }
