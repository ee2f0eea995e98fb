"""A report as Markdown, for a page or a pull request."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .tables import TextTable, tables

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


def as_markdown(report: Mapping[str, Any], heading: Mapping[str, object]) -> str:
    """Return the report as Markdown tables (CommonMark with GitHub's tables).

    Args:
        report: As `build_report` returns it, with or without its results.
        heading: What was run, by name: suite, policy, models, ...; first in the text.
    """
    told = {**heading, "questions": f"{report['questions']:,}"}
    return markdown_of("Evaluation", told, tables(report), report["notes"])


def markdown_of(
    title: str,
    heading: Mapping[str, object],
    parts: Iterable[TextTable],
    notes: Sequence[str],
) -> str:
    """Return tables as Markdown, what was measured before them and notes behind."""
    lines = [f"# {_cell(title)}", ""]
    lines += [f"- {_cell(name)}: {_cell(value)}" for name, value in heading.items()]
    lines += [""]
    for table in parts:
        lines += [f"## {_cell(table.title)}", "", *_lines(table), ""]
    if notes:
        lines += ["## To be known", "", *(f"- {_cell(note)}" for note in notes), ""]
    return "\n".join(lines)


def _lines(table: TextTable) -> list[str]:
    numbers = len(table.columns) - table.words
    rules = ["---"] * table.words + ["---:"] * numbers
    rows = (table.columns, *table.rows)
    cells = [[_cell(cell) for cell in row] for row in rows]
    return ["| " + " | ".join(row) + " |" for row in (cells[0], rules, *cells[1:])]


def _cell(value: object) -> str:
    """Return text that can neither break the table nor become markup."""
    return _SPECIAL.sub(r"\\\1", " ".join(str(value).split()))
