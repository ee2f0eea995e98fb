"""Results by id inside a report, written and read back."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from qa.evaluation.judged import Judged
from qa.exceptions import EvaluationDataError
from qa.pipeline.scores import SCORES


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
