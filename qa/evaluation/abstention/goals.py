"""What the figures are held against."""

from collections.abc import Mapping
from typing import Any, Final

from . import scores as names

_LSTM_ABOVE: Final = 0.08


def goals(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each goal with what was reached; None where it can't be told."""
    differences = report["differences"]
    lstm = differences.get(f"{names.LSTM} against {names.LOG_PROBABILITY}")
    joint = next(
        part for name, part in differences.items() if name.startswith(names.JOINT)
    )
    gaps = [part["difference"] for part in report["against_distance"]]
    return [
        _goal(
            "AUROC of the LSTM above log-probability",
            lstm["auroc"]["difference"] if lstm else None,
            least=_LSTM_ABOVE,
        ),
        _goal(
            "AUROC of the joint score above the best single one",
            joint["auroc"]["difference"],
            least=0.0,
        ),
        _goal(
            "least risk that all gates save against distance alone, coverage 20 to 80 %",
            -max(gaps) if gaps else None,
            least=0.0,
        ),
    ]


def _goal(what: str, value: float | None, *, least: float) -> dict[str, Any]:
    # Nothing gained is not above.
    is_met = None if value is None else value > 0 and value >= least
    return {"what": what, "value": value, "least": least, "is_met": is_met}
