"""Results by id inside a report, written and read back."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from qa.evaluation.judging import Judged
from qa.exceptions import EvaluationDataError
from qa.pipeline.gates import SCORES

from . import counts, gates
from .counts import columns_of
from .signals import signals


def results_of(rows: Sequence[Judged]) -> dict[str, dict[str, Any]]:
    """Return each row by its id, with the signals that rank and no other."""
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
    """Read the rows of a report.

    Raises:
        EvaluationDataError: It holds no results by id, or one can't be read.
    """
    results = report.get("results")
    if not isinstance(results, dict):
        raise EvaluationDataError(
            "The report holds no results by id; write one with "
            "`manage.py evaluate SUITE --json PATH`."
        )
    return [_judged(name, row) for name, row in results.items()]


def _judged(name: str, row: Mapping[str, Any]) -> Judged:
    try:
        return Judged(
            id=name,
            group=str(row["group"]),
            signals=dict(row["scores"]),
            is_answerable=_flag(row["should_answer"]),
            is_correct=_flag(row["correct"]),
            is_answered=bool(_flag(row["answered"])),
            gate=str(row["gate"]),
            reason=str(row["reason"]),
            measures=dict(row["measures"]),
            milliseconds=float(row["milliseconds"]),
            model_milliseconds=float(row["model_milliseconds"]),
            answer_id=UUID(row["answer"]) if row["answer"] else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        msg = f"The result {name[:80]!r} of the report can't be read: {error!r}."
        raise EvaluationDataError(msg) from error


def _flag(value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    msg = f"{value!r} is neither true, false nor null"
    raise ValueError(msg)


# The report of a run, as a JSON object.


def build_report(
    rows: Sequence[Judged], *, policy: gates.FrozenThresholds | None
) -> dict[str, Any]:
    """Report on what became of labelled questions.

    Args:
        rows: What became of each question, in any order; ids are unique.
        policy: The thresholds that gates are played again by; None where no gate
            decides.
    """
    columns = columns_of(rows)
    report = {
        "questions": len(columns.rows),
        "groups": len(set(columns.clusters.tolist())),
        "rates": counts.rates(columns),
        "two_by_two": counts.outcomes(columns),
        "abstention": counts.abstention(columns),
        "confusion": counts.confusion(columns),
        "ablations": gates.ablations(columns, policy),
        "alpha": gates.alpha_sweep(columns.rows, policy),
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
    """Say what a reader has to know before believing the figures."""
    found = []
    undrafted = report["signals"]["undrafted"]
    if undrafted:
        found.append(
            f"{undrafted:,} questions have no draft, so they count as wrong if shown in "
            "the figures of the signals. A run in shadow writes one for each."
        )
    if report["ablations"]["why_not"]:
        found.append(report["ablations"]["why_not"])
    if report["ablations"].get("replayed_otherwise"):
        found.append(
            f"{report['ablations']['replayed_otherwise']:,} questions were decided "
            "otherwise than this policy decides on their stored signals: it is another "
            "policy than the run's, or something beside thresholds decided."
        )
    if is_clustered:
        found.append(
            f"The questions come in {report['groups']:,} groups. Intervals marked "
            "clustered or bootstrap resample whole groups; Wilson's take questions as "
            "independent and are too narrow."
        )
    return found
