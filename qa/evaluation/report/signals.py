"""The value of stored signals, each as a trust score and together through the gates.

Where an enforced gate hid what later gates would have done, the figure is missing
rather than estimated: run the suite in shadow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from qa.evaluation.cases import LabelledAnswer
from qa.evaluation.decisions import table_of
from qa.evaluation.metrics import selective
from qa.evaluation.metrics.calibration_error import (
    Binning,
    brier_score,
    expected_calibration_error,
    reliability,
)
from qa.evaluation.metrics.intervals import Interval, bootstrap
from qa.pipeline.gates import CONFIDENCES, SCORES, switches
from qa.pipeline.policy import Policy

from .counts import Columns, Flags, Part, rate

COVERAGES = (0.2, 0.4, 0.6, 0.8)
RISKS = (0.05, 0.1, 0.2)
# Signals that are probabilities that the answer may be shown.
PROBABILITIES = ("verdict_probability", *CONFIDENCES)


def signals(columns: Columns) -> Part:
    rows = columns.rows
    if not rows:
        return {"error_rate": None, "oracle_aurc": None, "undrafted": 0, "scores": {}}
    wrong = columns.wrong.tolist()
    scores = scores_of(rows)
    rankings = [selective.rank(values, wrong) for values in scores.values()]
    intervals = bootstrap([one.areas for one in rankings], columns.clusters)
    undrafted = int((~columns.has_draft & ~columns.undue).sum())
    return {
        "error_rate": float(columns.wrong.mean()),
        "oracle_aurc": selective.least_aurc(wrong),
        # These count as wrong if shown, since they have no draft to judge.
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
    """Return each signal that any row has, with higher values more trusted."""
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
    """Return the known values of a probability, and whether each answer is right."""
    held = [
        (value, not row.is_wrong_if_shown)
        for row in rows
        if (value := row.signals.get(name)) is not None
    ]
    return [value for value, _ in held], [right for _, right in held]


def calibration_error(rows: Sequence[LabelledAnswer], name: str) -> Part:
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
    curve = selective.risk_coverage(values, wrong)
    area = selective.aurc(values, wrong)
    return {
        "measured": sum(value is not None for value in values),
        "auroc": selective.auroc(values, wrong),
        "auroc_95": intervals[1],
        "aurc": area,
        "aurc_95": intervals[0],
        "excess_aurc": max(0.0, area - selective.least_aurc(wrong)),
        "average_precision": selective.average_precision(values, wrong),
        "risk_at_coverage": [
            {"coverage": share, "risk": curve.risk_at(share)} for share in COVERAGES
        ],
        "coverage_at_risk": [
            {"risk": risk, "coverage": curve.coverage_at(risk)} for risk in RISKS
        ],
    }


_ALL = "all gates"
# A run in shadow can't measure both sides of these: beside an entry's own answer no
# draft is written, and for a draft it is unknown whether the entry would have been
# right.
_AS_IT_WAS = frozenset({"verification", "sources_must_agree"})
# {name: the switches that are on}
ABLATIONS: Mapping[str, frozenset[str]] = {
    "no gate": frozenset(),
    "hard refusal alone": frozenset({"hard_refusal"}),
    "verifier alone": frozenset({"verification"}),
    "soft refusal alone": frozenset({"soft_refusal"}),
    "abstention alone": frozenset({"abstention"}),
    "hard and soft refusal": frozenset({"hard_refusal", "soft_refusal"}),
    "hard, soft and abstention": frozenset(
        {"hard_refusal", "soft_refusal", "abstention"}
    ),
    _ALL: switches() - _AS_IT_WAS,
}
ALPHAS = tuple(round(0.1 * step, 1) for step in range(1, 21))


def ablations(columns: Columns, policy: Policy | None) -> Part:
    why = _why_not(columns.rows, policy)
    if why or policy is None:
        return {"why_not": why, "gates": {}}
    table = table_of(columns.rows)
    own = table.decide(policy)
    differing = int((own.answered != columns.answered)[~own.unknown].sum())
    parts = {}
    for name in ABLATIONS:
        decided = table.decide(with_gates(policy, name))
        parts[name] = _ablation(columns, decided.answered, decided.unknown)
    return {"why_not": "", "replayed_otherwise": differing, "gates": parts}


def with_gates(policy: Policy, name: str) -> Policy:
    """Return a policy that enforces only the gates of the ablation `name`.

    "all gates" leaves the verifier and the agreement of sources as the policy has them.
    """
    chosen = ABLATIONS[name]
    left = _AS_IT_WAS if name == _ALL else frozenset[str]()
    on: dict[str, Any] = {each: each in chosen for each in switches() - left}
    return replace(policy, **on)


def alpha_sweep(rows: Sequence[LabelledAnswer], policy: Policy | None) -> list[Part]:
    """Return refusals and accuracy by alpha, for hard refusal alone and for all gates.

    Empty if no gate can be replayed (see `ablations`). Learn to Refuse (Cao, 2023),
    figure 5.
    """
    if policy is None or _why_not(rows, policy):
        return []
    table = table_of(rows)
    swept = []
    for alpha in sorted({*ALPHAS, policy.alpha}):
        part: Part = {"alpha": alpha, "is_own": alpha == policy.alpha}
        for name in ("hard refusal alone", "all gates"):
            decided = table.decide(with_gates(replace(policy, alpha=alpha), name))
            shown = int(decided.answered.sum())
            wrong = int((decided.answered & table.wrong).sum())
            unknown = int(decided.unknown.sum())
            part[name] = {
                "refused": len(rows) - shown - unknown,
                "answered": shown,
                "unknown": unknown,
                "accuracy": 1 - wrong / shown if shown and not unknown else None,
            }
        swept.append(part)
    return swept


def _why_not(rows: Sequence[LabelledAnswer], policy: Policy | None) -> str:
    if policy is None:
        return "No policy decided this run, so there are no gates to leave out."
    if not any(row.signals for row in rows):
        return "No signals are stored with these results, so no gate can be replayed."
    return ""


def _ablation(columns: Columns, answered: Flags, unknown: Flags) -> dict[str, Any]:
    undrafted = answered & ~columns.has_draft & ~columns.undue
    hidden = int((unknown | undrafted).sum())
    if hidden:
        return {
            "unknown": hidden,
            "why_not": f"For {hidden:,} questions it is unknown what would have been "
            "answered: an enforced gate decided them. Run the suite in shadow, and for "
            "the verifier with its gate enforced.",
        }
    table = selective.two_by_two(columns.should_answer, answered.tolist())
    return {
        "unknown": 0,
        "why_not": "",
        "answered": rate(answered, columns.all),
        "accuracy": rate(~columns.wrong, answered),
        "wrong_answers": rate(columns.wrong, answered),
        "false_answers": rate(answered, columns.undue),
        "false_refusals": rate(~answered, columns.due),
        "abstention": {
            "precision": table.precision,
            "recall": table.recall,
            "f1": table.f1,
        }
        if np.any(columns.undue)
        else None,
    }
