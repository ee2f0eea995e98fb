"""How wrong one is at a given coverage, and how much can be shown at a given risk."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from qa.evaluation.metrics.intervals import Numbers, Statistic, bootstrap
from qa.evaluation.metrics.selective import Ranking, rank

from .folds import Scores
from .values import Examined

COVERAGES = tuple(step / 10 for step in range(2, 9))
RISK = 0.05
_TINY = 1e-6  # weights are counts: a millionth of an answer is none


def risks(examined: Examined, scores: Mapping[str, Scores]) -> dict[str, Any]:
    """Return for each score the risk at each coverage and the coverage at 5 % risk."""
    rankings = [rank(values.tolist(), examined.wrong) for values in scores.values()]
    found = bootstrap([_curve(one) for one in rankings], examined.clusters, within=True)
    width = len(COVERAGES) + 1
    parts: dict[str, Any] = {}
    for place, (name, ranking) in enumerate(zip(scores, rankings, strict=True)):
        values = _curve(ranking)(examined.once)[:, 0].tolist()
        intervals = found[place * width : (place + 1) * width]
        *risky, shown = [
            {"value": value, "bootstrap_95": interval}
            for value, interval in zip(values, intervals, strict=True)
        ]
        parts[name] = {
            "risk_at_coverage": [
                {"coverage": share} | part
                for share, part in zip(COVERAGES, risky, strict=True)
            ],
            "coverage_at_risk": {"risk": RISK} | shown,
        }
    return parts


def risk_differences(
    examined: Examined, first: Scores, second: Scores
) -> list[dict[str, Any]]:
    """Return the risk of the second score minus the first's at each coverage.

    Each draw takes the same answers for both.
    """
    curves = [
        _curve(rank(values.tolist(), examined.wrong)) for values in (first, second)
    ]

    def difference(weights: Numbers) -> Numbers:
        one, two = (curve(weights)[:-1] for curve in curves)
        return two - one

    intervals = bootstrap([difference], examined.clusters, within=True)
    ones, twos = (curve(examined.once)[:-1, 0].tolist() for curve in curves)
    return [
        {
            "coverage": share,
            "first": one,
            "second": two,
            "difference": two - one,
            "difference_95": interval,
        }
        for share, one, two, interval in zip(
            COVERAGES, ones, twos, intervals, strict=True
        )
    ]


def _curve(ranking: Ranking) -> Statistic:
    """Return the risk at each of `COVERAGES`, and last the largest coverage at `RISK`.

    The risk is that of the first step that shows at least so much, as
    `RiskCoverage.risk_at` has it; the coverage is 0 where no step is safe enough.
    """

    def curve(weights: Numbers) -> Numbers:
        shown, bad = (np.cumsum(part, axis=1) for part in ranking.steps(weights))
        everything = shown[:, -1]
        rows = np.arange(len(weights))
        figures = []
        for coverage in COVERAGES:
            reached = shown >= (coverage - _TINY) * everything[:, None]
            first = reached.argmax(axis=1)
            figures.append(bad[rows, first] / shown[rows, first])
        is_safe = bad <= RISK * shown + _TINY
        figures.append(np.where(is_safe, shown, 0.0).max(axis=1) / everything)
        return np.stack(figures)

    return curve
