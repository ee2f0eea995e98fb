"""Blocks, which a text consists of, and how tables and lists are written in them."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import Any

MAX_WHOLE = 4_000
"""Maximum characters of a list or table; a longer one is cut between items."""

_MARKS = "*-•◦▪·"
_NUMBERED = re.compile(r"(\d{1,3})[.)] +(?=\S)")
_MAX_NUMBER = 999  # longer numbers are not read as an item's mark


class Kind(StrEnum):
    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST = "list"
    TABLE = "table"
    CODE = "code"
    PAIR = "pair"  # a question or term, with its answer or definition
    CAPTION = "caption"  # of the table below it
    FURNITURE = "furniture"  # lines about the document itself


@dataclass(frozen=True, slots=True)
class Block:
    """A self-contained part of a text, with its place, such as "page 3"."""

    kind: Kind
    lines: tuple[str, ...]  # a paragraph's lines, a list's items or a table's rows
    place: str
    level: int = 1  # of a heading, from 1
    question: str = ""  # which a pair answers

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def bullet(item: str, number: int | None = None) -> str:
    """Return a list item with its mark: its own number, the given one, or a dash."""
    said = " ".join(item.split()).lstrip(_MARKS).strip()
    if own := _NUMBERED.match(said):
        number, said = int(own[1]), said[own.end() :]
    is_counted = number is not None and 0 <= number <= _MAX_NUMBER
    return f"{number}. {said}" if is_counted else f"- {said}"


def table_row(cells: Iterable[str]) -> str:
    """Return a row as `kb.text.layout` reads it; bars at both ends would be a frame."""
    said = [" ".join(cell.split()) for cell in cells]
    if len(said) > 1 and not said[0] and not said[-1]:
        said[-1] = "\u2013"
    return " | ".join(said)


HEADED = "--- | ---"
"""Row below the first one of a table, marking it as column headings."""


def headed(rows: Sequence[str]) -> tuple[str, ...]:
    """Return a table's rows with `HEADED` below the first, known to be headings.

    Unchanged if there is one column, which `kb.text.layout` does not read as a table,
    or no row below.
    """
    first, *others = rows
    if others and " | " in first and any(map(str.isalnum, first)):
        return first, HEADED, *others
    return tuple(rows)


Cell = tuple[object, str]
"""A cell's identity and text; a merged cell appears in each of its positions."""


def table_rows(
    rows: Iterable[Sequence[Cell]],
    *,
    is_heading: Callable[[Any], bool] = lambda _cell: False,
) -> tuple[str, ...]:
    """Return the rows of a table with one row of headings, one for each column.

    `HEADED` follows if all cells of the first row are headings by `is_heading`.
    A heading that spans columns is put before each heading below it. A first row of one
    cell introduces the table; such a cell further down is written once.
    """
    grid = [list(row) for row in rows if any(text.strip() for _, text in row)]
    lead: tuple[str, ...] = ()
    if len(grid) > 2 and _is_one(grid[0]):
        lead, grid = (as_lead(grid[0][0][1]),), grid[1:]
    heads, heading = joined_headings(grid)
    body = [
        [row[0][1], *[""] * (len(row) - 1)]
        if _is_one(row)
        else [text for _, text in row]
        for row in grid[heads:]
    ]
    said = [table_row(row) for row in [heading, *body][: len(grid)]]
    if said and all(is_heading(cell) for cell, _ in grid[0]):
        return *lead, *headed(said)
    return *lead, *said


def joined_headings(grid: Sequence[Sequence[Cell]]) -> tuple[int, list[str]]:
    """Return the number of heading rows, and the joined heading of each column."""
    heads = 1
    while heads + 1 < len(grid) and _goes_on(grid[heads - 1], grid[heads]):
        heads += 1
    columns = zip_longest(*grid[:heads], fillvalue=(None, ""))
    return heads, [
        " ".join(dict.fromkeys(text for _, text in column if text.strip()))
        for column in columns
    ]


def _is_one(row: Sequence[Cell]) -> bool:
    return len(row) > 1 and len({cell for cell, _ in row}) == 1


def _goes_on(upper: Sequence[Cell], lower: Sequence[Cell]) -> bool:
    """Return whether the lower row has headings below those that span columns above."""
    cells = [cell for cell, _ in upper]
    spans = [cells.count(cell) > 1 for cell in cells]
    in_both = lower[0][0] == cells[0] or not lower[0][1].strip()
    return any(spans) and not _is_one(lower) and (in_both or all(spans))


def as_lead(text: str) -> str:
    return f"{' '.join(text.split()).rstrip('.:')}:"
