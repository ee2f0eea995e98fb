"""How well each score tells right answers from wrong ones (the paper's table 1)."""

from collections.abc import Mapping, Sequence
from typing import Any

from qa.evaluation.metrics.calibration_error import (
    brier_score,
    expected_calibration_error,
    reliability,
)
from qa.evaluation.metrics.intervals import Numbers, Statistic, bootstrap
from qa.evaluation.metrics.paired import Difference, differences
from qa.evaluation.metrics.selective import Ranking, least_aurc, rank

from .folds import Flags, Scores
from .values import Examined

Part = dict[str, Any]


def areas(
    examined: Examined,
    scores: Mapping[str, Scores],
    *,
    probabilities: Sequence[str] = (),
) -> Part:
    """Return AUROC and AURC of each score, with intervals.

    Args:
        examined: Whose right and wrong answers are to be told apart.
        scores: By name, higher is more trusted; NaN where not measured.
        probabilities: Names of those that claim to be probabilities of being right,
            whose calibration is measured.
    """
    rankings = {
        name: rank(values.tolist(), examined.wrong) for name, values in scores.items()
    }
    found = bootstrap(
        [one.areas for one in rankings.values()], examined.clusters, within=True
    )
    parts = {}
    for place, (name, ranking) in enumerate(rankings.items()):
        parts[name] = {
            "aurc": value_of(_aurc(ranking), examined),
            "aurc_95": found[2 * place],
            "auroc": value_of(_auroc(ranking), examined),
            "auroc_95": found[2 * place + 1],
        }
        if name in probabilities:
            parts[name] |= _calibration(scores[name], examined.right)
    return {"oracle_aurc": least_aurc(examined.wrong), "scores": parts}


def auroc(examined: Examined, scores: Scores) -> Part:
    """Return one score's AUROC with its interval."""
    statistic = _auroc(rank(scores.tolist(), examined.wrong))
    (interval,) = bootstrap([statistic], examined.clusters, within=True)
    return {"auroc": value_of(statistic, examined), "auroc_95": interval}


def compared(
    examined: Examined, pairs: Mapping[str, tuple[Scores, Scores]]
) -> dict[str, Part]:
    """Return by how much the second score of each pair is above the first.

    Each draw takes the same answers for both. A higher AUROC and a lower AURC are better.
    """
    rankings = {
        name: [rank(values.tolist(), examined.wrong) for values in pair]
        for name, pair in pairs.items()
    }
    statistics = [
        (area(first), area(second))
        for first, second in rankings.values()
        for area in (_auroc, _aurc)
    ]
    found = differences(statistics, examined.clusters, within=True)
    return {
        name: {
            "auroc": difference(found[2 * place]),
            "aurc": difference(found[2 * place + 1]),
        }
        for place, name in enumerate(pairs)
    }


def difference(found: Difference) -> Part:
    """Return a difference for a report."""
    return {"difference": found.value, "difference_95": found.interval}


def value_of(statistic: Statistic, examined: Examined) -> float | None:
    """Return a statistic of the answers themselves; None where it is not defined."""
    value = float(statistic(examined.once)[0])
    return None if value != value else value  # NaN alone differs from itself


def _auroc(ranking: Ranking) -> Statistic:
    def auroc_of(weights: Numbers) -> Numbers:
        area: Numbers = ranking.areas(weights)[1]
        return area

    return auroc_of


def _aurc(ranking: Ranking) -> Statistic:
    def aurc_of(weights: Numbers) -> Numbers:
        area: Numbers = ranking.areas(weights)[0]
        return area

    return aurc_of


def _calibration(values: Scores, right: Flags) -> Part:
    held, labels = values.tolist(), right.tolist()
    return {
        "ece": expected_calibration_error(reliability(held, labels)),
        "brier": brier_score(held, labels),
    }
