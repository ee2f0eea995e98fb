"""What a text is made of: blocks, and how a table and a list are written in one."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import Any

MAX_WHOLE = 4_000
"""Characters of a list or table that is kept whole; a longer one is cut between items."""

_MARKS = "*-•◦▪·"
_NUMBERED = re.compile(r"(\d{1,3})[.)] +(?=\S)")
_MAX_NUMBER = 999  # one of more digits begins no item, as a text is read


class Kind(StrEnum):
    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST = "list"
    TABLE = "table"
    CODE = "code"
    PAIR = "pair"  # a question or a term, and all that is said to it
    CAPTION = "caption"  # of the table below it
    FURNITURE = "furniture"  # lines that tell about the document itself


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a text that is read by itself, with its place, such as "page 3"."""

    kind: Kind
    lines: tuple[str, ...]  # of a paragraph, a list's items, a table's rows
    place: str
    level: int = 1  # of a heading, from 1
    question: str = ""  # that a pair answers

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def bullet(item: str, number: int | None = None) -> str:
    """Return an item of a list with its mark: the number that it has, or a dash."""
    said = " ".join(item.split()).lstrip(_MARKS).strip()
    if own := _NUMBERED.match(said):
        number, said = int(own[1]), said[own.end() :]
    is_counted = number is not None and 0 <= number <= _MAX_NUMBER
    return f"{number}. {said}" if is_counted else f"- {said}"


def table_row(cells: Iterable[str]) -> str:
    """Return a row as `kb.text.layout` reads it: bars at both ends would be its frame."""
    said = [" ".join(cell.split()) for cell in cells]
    if len(said) > 1 and not said[0] and not said[-1]:
        said[-1] = "\u2013"
    return " | ".join(said)


HEADED = "--- | ---"
"""Stands below the headings of a table that are known to be some."""


def headed(rows: Sequence[str]) -> tuple[str, ...]:
    """Return a table's rows with `HEADED` below the first, which is known to be headings.

    Not where there is one column, which `kb.text.layout` takes for no table, or no row below.
    """
    first, *others = rows
    if others and " | " in first and any(map(str.isalnum, first)):
        return first, HEADED, *others
    return tuple(rows)


Cell = tuple[object, str]
"""What tells a cell from others, and its text: a merged one stands in all its places."""


def table_rows(
    rows: Iterable[Sequence[Cell]],
    *,
    is_heading: Callable[[Any], bool] = lambda _cell: False,
) -> tuple[str, ...]:
    """Return the rows of a table with one row of headings, each above its own column.

    `HEADED` stands below where the first row's cells are known to be headings.
    A heading over several columns is put before each of those below it. A first row of
    one cell introduces the table; such a cell further below is none of every column.
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
    """Return how many rows of headings a table has, and the heading of each column."""
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
    """Tell whether the lower row has headings below those that span columns above it."""
    cells = [cell for cell, _ in upper]
    spans = [cells.count(cell) > 1 for cell in cells]
    in_both = lower[0][0] == cells[0] or not lower[0][1].strip()
    return any(spans) and not _is_one(lower) and (in_both or all(spans))


def as_lead(text: str) -> str:
    return f"{' '.join(text.split()).rstrip('.:')}:"
