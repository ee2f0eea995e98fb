"""AUROC, risk at coverage, and masking by a threshold (Tables 1 and 2 of the paper)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from qa.evaluation.metrics.calibration_error import (
    brier_score,
    expected_calibration_error,
    reliability,
)
from qa.evaluation.metrics.intervals import (
    Difference,
    Interval,
    Numbers,
    Statistic,
    bootstrap,
    differences,
    mean,
    share,
)
from qa.evaluation.metrics.selective import Ranking, least_aurc, rank
from qa.training.cross_fitting import Scores
from studies.figures import aurc as aurc_statistic
from studies.figures import auroc as auroc_statistic

from .scores import Examined

Part = dict[str, Any]


def areas(
    examined: Examined,
    scores: Mapping[str, Scores],
    *,
    probabilities: Sequence[str] = (),
) -> Part:
    """Return AUROC and AURC of each score, with intervals.

    Args:
        scores: By name; higher means more trusted, NaN not measured.
        probabilities: Names of the scores that are meant as probabilities of being
            right; their calibration is measured too.
    """
    rankings = {name: _ranking(examined, values) for name, values in scores.items()}
    areas = (("aurc", aurc_statistic), ("auroc", auroc_statistic))
    found = _with_intervals(
        examined, [area(one) for one in rankings.values() for _, area in areas]
    )
    parts: dict[str, Part] = {}
    for name in scores:
        parts[name] = {}
        for area, _ in areas:
            value, interval = next(found)
            parts[name] |= {area: value, f"{area}_95": interval}
        if name in probabilities:
            held, labels = scores[name].tolist(), examined.right.tolist()
            parts[name]["ece"] = expected_calibration_error(reliability(held, labels))
            parts[name]["brier"] = brier_score(held, labels)
    return {"oracle_aurc": least_aurc(examined.wrong), "scores": parts}


def auroc(examined: Examined, scores: Scores) -> Part:
    ((value, interval),) = _with_intervals(
        examined, [auroc_statistic(_ranking(examined, scores))]
    )
    return {"auroc": value, "auroc_95": interval}


def compared(
    examined: Examined, pairs: Mapping[str, tuple[Scores, Scores]]
) -> dict[str, Part]:
    """Return the second score's AUROC and AURC minus the first's, for each pair.

    Each draw uses the same answers for both. Higher AUROC and lower AURC are better.
    """
    statistics = [
        (area(_ranking(examined, first)), area(_ranking(examined, second)))
        for first, second in pairs.values()
        for area in (auroc_statistic, aurc_statistic)
    ]
    found = iter(differences(statistics, examined.clusters, within=True))
    return {
        name: {area: _part(next(found)) for area in ("auroc", "aurc")} for name in pairs
    }


def _part(found: Difference) -> Part:
    return {"difference": found.value, "difference_95": found.interval}


def _ranking(examined: Examined, scores: Scores) -> Ranking:
    return rank(scores.tolist(), examined.wrong)


def _with_intervals(
    examined: Examined, statistics: Sequence[Statistic]
) -> Iterator[tuple[float | None, Interval | None]]:
    """Yield the value of each statistic, None if undefined, and its interval."""
    intervals = bootstrap(statistics, examined.clusters, within=True)
    for statistic, interval in zip(statistics, intervals, strict=True):
        value = float(statistic(examined.once)[0])
        yield None if math.isnan(value) else value, interval


# Risk at a given coverage, and coverage at a given risk.


COVERAGES = tuple(step / 10 for step in range(2, 9))
RISK = 0.05
_TINY = 1e-6  # weights are counts, so a millionth of an answer is rounding error


def risks(examined: Examined, scores: Mapping[str, Scores]) -> dict[str, Any]:
    """Return for each score the risk at each coverage and the coverage at 5 % risk."""
    curves = [_curve(_ranking(examined, values)) for values in scores.values()]
    intervals = iter(bootstrap(curves, examined.clusters, within=True))
    parts: dict[str, Any] = {}
    for name, curve in zip(scores, curves, strict=True):
        *risky, shown = [
            {"value": value, "bootstrap_95": next(intervals)}
            for value in curve(examined.once)[:, 0].tolist()
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

    Each draw uses the same answers for both.
    """
    curves = [_curve(_ranking(examined, values)) for values in (first, second)]

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

    As in `RiskCoverage.risk_at`, the risk at a coverage is that of the first step that
    reaches it. The coverage at `RISK` is 0 if no step is safe enough.
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


# What a confidence threshold shows and masks (Table 2 of the paper).


THRESHOLDS = tuple(step / 10 for step in range(10))


def masking(
    examined: Examined,
    confidence: Scores,
    thresholds: Sequence[float] = THRESHOLDS,
) -> list[dict[str, Any]]:
    """Return precision, recall, ROUGE-L and masked shares at each threshold.

    Every figure has an interval. An answer is displayed if its confidence is at least
    the threshold. ROUGE-L covers the answers that have a reference; questions without
    an answer have none.
    """
    rows = [_row(examined, confidence, threshold) for threshold in thresholds]
    found = _with_intervals(examined, [one for row in rows for one in row.values()])
    names = ("value", "bootstrap_95")
    return [
        {"threshold": threshold}
        | {name: dict(zip(names, next(found), strict=True)) for name in row}
        for threshold, row in zip(thresholds, rows, strict=True)
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
