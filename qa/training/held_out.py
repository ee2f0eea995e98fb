"""Quality of a probe on answers that none of its fits saw."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

import numpy as np
from numpy.typing import NDArray

from probes.cards import Json
from qa.evaluation.metrics.calibration_error import BINS, reliability
from qa.evaluation.metrics.intervals import Interval, Statistic, bootstrap, mean
from qa.evaluation.metrics.selective import Scores, rank, risk_coverage

FIGURES: Final = ("auroc", "aurc", "brier", "ece")
_POINTS: Final = 100


def figures(
    confidences: NDArray[np.float64],
    right: NDArray[np.bool_],
    clusters: NDArray[np.intp],
    *,
    baselines: Mapping[str, Scores],
) -> dict[str, Json]:
    """Return AUROC, AURC, Brier score and ECE with bootstrap 95 % intervals.

    Groups are resampled, then answers within them, with the same resamples for every
    metric. Confidences are out of fold, in [0, 1]; baselines are only ranked.
    """
    wrong = (~right).tolist()
    scores: dict[str, Scores] = {"": confidences.tolist(), **baselines}
    areas = [rank(values, wrong).areas for values in scores.values()]
    everything = np.ones(len(right), np.bool_)
    squares = (confidences - right) ** 2
    own = [mean(squares, everything), _calibration_error(confidences, right)]
    intervals = bootstrap([*areas, *own], clusters, within=True)
    once = np.ones((1, len(right)), np.float32)
    values = [float(v[0]) for one in (*areas, *own) for v in np.atleast_2d(one(once))]
    found = [
        figure(value, interval)
        for value, interval in zip(values, intervals, strict=True)
    ]
    ranked = {
        name: {"aurc": found[2 * place], "auroc": found[2 * place + 1]}
        for place, name in enumerate(scores)
    }
    mine = ranked.pop("")
    curve = risk_coverage(confidences.tolist(), wrong)
    points = list(zip(curve.coverage, curve.risk, strict=True))
    step = math.ceil(len(points) / _POINTS)
    bins = [asdict(one) for one in reliability(confidences.tolist(), right.tolist())]
    return {
        "answers": len(right),
        "groups": len(np.unique(clusters)),
        "right": float(right.mean()),
        "auroc": mine["auroc"],
        "aurc": mine["aurc"],
        "brier": found[-2],
        "ece": found[-1],
        "reliability": [*bins],
        "risk_coverage": [[*point] for point in (*points[::step], points[-1])],
        "baselines": {name: dict(part) for name, part in ranked.items()},
    }


def figure(value: float | None, interval: Interval | None) -> Json:
    return {
        "value": None if value is None or math.isnan(value) else value,
        "low": interval[0] if interval else None,
        "high": interval[1] if interval else None,
    }


def _calibration_error(
    confidences: NDArray[np.float64], right: NDArray[np.bool_]
) -> Statistic:
    places = np.minimum((confidences * BINS).astype(np.intp), BINS - 1)
    inside = np.eye(BINS, dtype=np.float32)[places]
    gaps = ((right - confidences)[:, None] * inside).astype(np.float32)
    return lambda weights: np.abs(weights @ gaps).sum(axis=1) / weights.sum(axis=1)


def as_text(figure: Json) -> str:
    if not isinstance(figure, dict) or not isinstance(figure.get("value"), float):
        return ""
    low, high = figure.get("low"), figure.get("high")
    if not isinstance(low, float) or not isinstance(high, float):
        return f"{figure['value']:.3f}"
    return f"{figure['value']:.3f} [{low:.3f}, {high:.3f}]"


def rows_of(name: str, metrics: Mapping[str, Json]) -> list[tuple[str, ...]]:
    rows = [(name, *(as_text(metrics.get(one)) for one in FIGURES))]
    baselines = metrics.get("baselines")
    for other, part in (baselines if isinstance(baselines, dict) else {}).items():
        figures_of = part if isinstance(part, dict) else {}
        row = (as_text(figures_of.get(one)) for one in FIGURES)
        rows.append((other.replace("_", " "), *row))
    return rows
