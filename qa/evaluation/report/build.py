"""The report of a run, as a JSON object."""

from collections.abc import Sequence
from typing import Any

from qa.evaluation.judged import Judged

from . import counts, gates
from .columns import columns_of
from .signals import signals
from .stored import results_of


def build_report(
    rows: Sequence[Judged], *, policy: gates.FrozenThresholds | None
) -> dict[str, Any]:
    """Report on what became of labelled questions.

    Args:
        rows: What became of each question, in any order; ids are unique.
        policy: The thresholds that gates are played again by; None where no gate
            decides.

    Raises:
        ValueError: An id stands twice.
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
