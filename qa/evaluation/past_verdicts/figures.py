"""The figures of verdicts: how often they are right, and what makes a difference."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from qa.evaluation.conflicts import told
from qa.evaluation.metrics.intervals import (
    Interval,
    Numbers,
    Statistic,
    bootstrap,
    share,
)
from qa.evaluation.metrics.paired import differences, mcnemar
from qa.evaluation.metrics.rates import Rate
from qa.evaluation.metrics.selective import auroc, rank

# The published rule: the label with the higher score.
MIDDLE: Final = 0.5
Flags = NDArray[np.bool_]


def figures(scores: Numbers, right: Flags) -> tuple[str, str, str]:
    """Return accuracy, balanced accuracy and AUROC of verdicts, as text.

    Args:
        scores: Probability of "yes" of each, in [0, 1].
        right: What is right of each.
    """
    says = scores >= MIDDLE
    accuracy = told(Rate(int((says == right).sum()), len(right)))
    return accuracy, _balanced(says, right), area_of(scores, right)


def difference(before: Numbers, after: Numbers, right: Flags) -> tuple[str, str, str]:
    """Return what accuracy and AUROC gain, and how often chance would do as much."""
    hits = [(each >= MIDDLE) == right for each in (before, after)]
    every = np.ones(len(right), dtype=np.bool_)
    accuracy, area = differences(
        [
            (share(hits[0], every), share(hits[1], every)),
            (_area(before, right), _area(after, right)),
        ],
        np.arange(len(right)),
    )
    p = mcnemar(hits[0].tolist(), hits[1].tolist()).p_value
    return (
        _told(accuracy.value, accuracy.interval, sign="+"),
        f"{p:.3f}",
        _told(area.value, area.interval, sign="+"),
    )


def _balanced(says: Flags, right: Flags) -> str:
    """Return the mean of the rates of known and unknown questions told rightly."""
    if right.all() or not right.any():
        return "-"
    return f"{(says[right].mean() + (~says[~right]).mean()) / 2:.2f}"


def area_of(scores: Numbers, right: Flags) -> str:
    """Return the AUROC of any scores with its interval, as text."""
    value = auroc(scores.tolist(), (~right).tolist())
    (interval,) = bootstrap([_area(scores, right)], np.arange(len(right)))
    return _told(value, interval)


def _area(scores: Numbers, right: Flags) -> Statistic:
    ranking = rank(scores.tolist(), (~right).tolist())

    def area(weights: Numbers) -> Numbers:
        found: Numbers = ranking.areas(weights)[1]
        return found

    return area


def _told(value: float | None, interval: Interval | None, *, sign: str = "") -> str:
    if value is None:
        return "-"
    if interval is None:
        return f"{value:{sign}.2f}"
    return f"{value:{sign}.2f} [{interval[0]:{sign}.2f}, {interval[1]:{sign}.2f}]"
