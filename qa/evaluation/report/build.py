"""The report of a run, as a JSON object."""

from collections.abc import Sequence
from typing import Any

from qa.evaluation.judged import Judged
from qa.evaluation.metrics.rates import Rate
from qa.pipeline.replay import Thresholds

from .columns import Columns, Flags, columns_of


def build_report(
    rows: Sequence[Judged], *, policy: Thresholds | None
) -> dict[str, Any]:
    """Count the rows.

    Args:
        rows: What became of each question; ids are unique.
        policy: The thresholds that the ablations play the gates by.

    Raises:
        ValueError: An id stands twice.
    """
    columns = columns_of(rows)
    return {"questions": len(columns.rows), "rates": _rates(columns)}


def _rates(columns: Columns) -> dict[str, Any]:
    answered, undue, due = columns.answered, columns.undue, columns.due
    return {
        "false_answers": _rate(answered, undue),
        "false_refusals": _rate(~answered, due),
        "wrong_answers": _rate(columns.wrong_if_shown, answered),
    }


def _rate(counted: Flags, among: Flags) -> dict[str, object]:
    rate = Rate(int((counted & among).sum()), int(among.sum()))
    return {
        "count": rate.count,
        "of": rate.total,
        "rate": rate.value,
        "wilson_95": rate.interval,
    }
