"""A report for people, in the terminal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .tables import TextTable, tables


def print_report(
    report: Mapping[str, Any],
    console: Console,
    *,
    questions: Mapping[str, str] | None = None,
) -> None:
    """Print every table of the report, and what has to be known to read it.

    Args:
        report: As `build_report` returns it, with or without its results.
        console: Where to.
        questions: The questions' texts by id, to print beside what came out wrong.
    """
    print_tables(tables(report, questions), report["notes"], console)


def print_tables(
    parts: Iterable[TextTable], notes: Sequence[str], console: Console
) -> None:
    """Print tables, and what has to be known to read them."""
    for table in parts:
        console.print(_as_rich(table))
    for note in notes:
        console.print(Text(note, style="dim"))


def _as_rich(table: TextTable) -> Table:
    shown = Table(title=table.title, title_justify="left", title_style="bold")
    for place, name in enumerate(table.columns):
        shown.add_column(name, justify="left" if place < table.words else "right")
    for row in table.rows:
        # A question may hold what rich takes for markup.
        shown.add_row(*(Text(cell) for cell in row))
    return shown
