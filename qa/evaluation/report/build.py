"""The report of a run as a JSON object, and the parsing of its results."""

from collections.abc import Mapping, Sequence
from json import dumps
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from qa.evaluation.judging import Judged
from qa.exceptions import EvaluationDataError
from qa.pipeline.gates import SCORES
from qa.pipeline.policy import Policy

from . import counts
from .counts import columns_of
from .signals import ablations, alpha_sweep, signals

_JUDGED: Final = TypeAdapter(Judged)
# {field of `Judged`: key in the report} where they differ.
_NAMES: Final = {
    "is_answerable": "should_answer",
    "is_answered": "answered",
    "is_correct": "correct",
    "signals": "scores",
    "answer_id": "answer",
}


def results_of(rows: Sequence[Judged]) -> dict[str, dict[str, Any]]:
    return {
        row.id: {
            "group": row.group,
            "should_answer": row.is_answerable,
            "answered": row.is_answered,
            "correct": row.is_correct,
            "gate": row.gate,
            "reason": row.reason,
            "scores": {n: v for n, v in row.signals.items() if n in SCORES},
            "measures": dict(row.measures),
            "milliseconds": row.milliseconds,
            "model_milliseconds": row.model_milliseconds,
            "answer": str(row.answer_id) if row.answer_id else None,
        }
        for row in rows
    }


def judged_from(report: Mapping[str, Any]) -> list[Judged]:
    results = report.get("results")
    if not isinstance(results, dict):
        raise EvaluationDataError(
            "The report contains no results by id; write one with "
            "`manage.py evaluate SUITE --json PATH`."
        )
    return [_judged(name, row) for name, row in results.items()]


def _judged(name: str, row: object) -> Judged:
    try:
        given = dict(row) if isinstance(row, Mapping) else {}
        for field, written in _NAMES.items():
            if written in given:
                given[field] = given.pop(written)
        return _JUDGED.validate_json(dumps({"id": name, **given}), strict=True)
    except ValidationError as error:
        fault = error.errors()[0]
        field = str(fault["loc"][0]) if fault["loc"] else ""
        raise EvaluationDataError(
            f"The result {name[:80]!r} of the report can't be read: "
            f"{_NAMES.get(field, field)}: {fault['msg']}."
        ) from error


def build_report(rows: Sequence[Judged], *, policy: Policy | None) -> dict[str, Any]:
    """Return the report on judged questions, given in any order with unique ids.

    Gates are replayed under `policy`; None if no gate decides.
    """
    columns = columns_of(rows)
    report = {
        "questions": len(columns.rows),
        "groups": len(set(columns.clusters.tolist())),
        "rates": counts.rates(columns),
        "two_by_two": counts.outcomes(columns),
        "abstention": counts.abstention(columns),
        "confusion": counts.confusion(columns),
        "ablations": ablations(columns, policy),
        "alpha": alpha_sweep(columns.rows, policy),
        "signals": signals(columns),
        "measures": counts.measures(columns),
        "times": counts.times(columns),
        "results": results_of(columns.rows),
    }
    if len(columns.rows) == 0:
        report["notes"] = ["No question was asked."]
    else:
        report["notes"] = _notes(report, is_clustered=columns.is_clustered)
    return report


def _notes(report: dict[str, Any], *, is_clustered: bool) -> list[str]:
    found = []
    undrafted = report["signals"]["undrafted"]
    if undrafted:
        found.append(
            f"{undrafted:,} questions have no draft, so the figures of the signals "
            "count them as wrong if shown. A run in shadow writes a draft for each."
        )
    if report["ablations"]["why_not"]:
        found.append(report["ablations"]["why_not"])
    if report["ablations"].get("replayed_otherwise"):
        found.append(
            f"{report['ablations']['replayed_otherwise']:,} questions were decided "
            "differently from how this policy decides on their stored signals: it is "
            "not the run's policy, or something other than thresholds decided."
        )
    if is_clustered:
        found.append(
            f"The questions come in {report['groups']:,} groups. Intervals marked "
            "clustered or bootstrap resample whole groups; Wilson's treat questions as "
            "independent and are too narrow."
        )
    return found
