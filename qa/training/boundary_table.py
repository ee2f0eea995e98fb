"""What a boundary probe is worth, as a table."""

from collections.abc import Mapping

from probes.cards import Json
from qa.evaluation.report.tables import TextTable, percent

from .boundary import WITH_NOTES
from .held_out import FIGURES, as_text


def probe_table(metrics: Mapping[str, Json]) -> TextTable:
    """Return its figures on prompts without notes and with them apart."""
    rows = [_row("without notes", metrics)]
    noted = metrics.get(WITH_NOTES)
    if isinstance(noted, dict):
        rows.append(_row("with notes", noted))
    columns = ("prompts", "count", "right", *(name.upper() for name in FIGURES))
    return TextTable("Boundary probe", columns, tuple(rows))


def _row(name: str, metrics: Mapping[str, Json]) -> tuple[str, ...]:
    count, right = metrics.get("answers"), metrics.get("right")
    return (
        name,
        str(count),
        percent(right if isinstance(right, float) else None),
        *(as_text(metrics.get(figure)) for figure in FIGURES),
    )
