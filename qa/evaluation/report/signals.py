"""What each stored signal is worth as a score of trust."""

from collections.abc import Sequence
from dataclasses import asdict

from qa.evaluation.cases import LabelledAnswer
from qa.evaluation.metrics.calibration_error import (
    Binning,
    brier_score,
    expected_calibration_error,
    reliability,
)
from qa.evaluation.metrics.intervals import Interval, bootstrap
from qa.evaluation.metrics.selective import (
    aurc,
    auroc,
    least_aurc,
    precision_recall,
    rank,
    risk_coverage,
)
from qa.pipeline.gates import CONFIDENCES, SCORES

from .counts import Columns, Part

COVERAGES = (0.2, 0.4, 0.6, 0.8)
RISKS = (0.05, 0.1, 0.2)
# Signals that say how probable it is that the answer may be shown.
PROBABILITIES = ("verdict_probability", *CONFIDENCES)


def signals(columns: Columns) -> Part:
    """Return how well each measured signal ranks what may be shown."""
    rows = columns.rows
    if not rows:
        return {"error_rate": None, "oracle_aurc": None, "undrafted": 0, "scores": {}}
    wrong = columns.wrong.tolist()
    scores = scores_of(rows)
    rankings = [rank(values, wrong) for values in scores.values()]
    intervals = bootstrap([one.areas for one in rankings], columns.clusters)
    undrafted = int((~columns.has_draft & ~columns.undue).sum())
    return {
        "error_rate": float(columns.wrong.mean()),
        "oracle_aurc": least_aurc(wrong),
        # They count as wrong if shown, whatever a draft would have said.
        "undrafted": undrafted,
        "scores": {
            name: _score(values, wrong, intervals[2 * place : 2 * place + 2])
            | (
                {"calibration": calibration_error(rows, name)}
                if name in PROBABILITIES
                else {}
            )
            for place, (name, values) in enumerate(scores.items())
        },
    }


def scores_of(rows: Sequence[LabelledAnswer]) -> dict[str, list[float | None]]:
    """Return each signal that any row has, oriented so that higher is more trusted."""
    held = {}
    for name, score in SCORES.items():
        values = [row.signals.get(name) for row in rows]
        if any(value is not None for value in values):
            held[name] = [
                None if value is None else score.oriented(value) for value in values
            ]
    return held


def probabilities_of(
    rows: Sequence[LabelledAnswer], name: str
) -> tuple[list[float], list[bool]]:
    """Return a probability's values and whether each answer may be shown.

    Without the rows that have no such value: a missing one claims nothing.
    """
    held = [
        (value, not row.is_wrong_if_shown)
        for row in rows
        if (value := row.signals.get(name)) is not None
    ]
    return [value for value, _ in held], [right for _, right in held]


def calibration_error(rows: Sequence[LabelledAnswer], name: str) -> Part:
    """Return ECE, Brier score and the reliability bins of a probability."""
    values, right = probabilities_of(rows, name)
    wide = reliability(values, right)
    even = reliability(values, right, binning=Binning.EQUAL_MASS)
    return {
        "count": len(values),
        "ece_equal_width": expected_calibration_error(wide),
        "ece_equal_mass": expected_calibration_error(even),
        "brier": brier_score(values, right),
        "bins": [asdict(one) for one in wide],
    }


def _score(
    values: Sequence[float | None],
    wrong: Sequence[bool],
    intervals: Sequence[Interval | None],
) -> Part:
    curve = risk_coverage(values, wrong)
    found = precision_recall(values, wrong)
    area = aurc(values, wrong)
    return {
        "measured": sum(value is not None for value in values),
        "auroc": auroc(values, wrong),
        "auroc_95": intervals[1],
        "aurc": area,
        "aurc_95": intervals[0],
        "excess_aurc": max(0.0, area - least_aurc(wrong)),
        "average_precision": found.average_precision if found else None,
        "risk_at_coverage": [
            {"coverage": share, "risk": curve.risk_at(share)} for share in COVERAGES
        ],
        "coverage_at_risk": [
            {"risk": risk, "coverage": curve.coverage_at(risk)} for risk in RISKS
        ],
    }
