"""The tables below each other on a sheet, each with its title and headings."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise, takewhile

from .blocks import Cell, joined_headings
from .columns import SAMPLE
from .header import rows_above

MAX_HEADS = 3  # rows of headings of one table
_MAX_TITLES = 2  # lines of the title of a table below another
_MIN_NUMBERS = 2  # rows below headings that contain no number

_COUNTED = re.compile(r"(?:table|tabelle|tab\.) *(?:\d+|[A-Z]\b)", re.IGNORECASE)
_CONTINUED = re.compile(r"\b(?:cont(?:inued|'?d|\.)|forts(?:etzung|\.))", re.IGNORECASE)
# What a cell may contain in place of a number.
_NO_NUMBER = re.compile(
    r"\W*|free\b.*|inclu.*|none|no|yes|n/?a|not .*|(?:up)?on (?:request|application)|varies|"
    r"frei|gratis|kostenlos.*|inkl.*|enthalten|kein.*|nein|ja|auf anfrage|entf[aä]llt",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"[0-9]")


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a sheet that is not empty.

    Attributes:
        merged: By column, the merged area that a cell is in, with its text.
    """

    number: int
    said: Sequence[str]
    merged: Mapping[int, Cell] = field(default_factory=dict)

    def at(self, column: int) -> str:
        return self.said[column].strip() if column < len(self.said) else ""

    @property
    def spread(self) -> list[str]:
        """The text of each cell; a merged one counts in all columns and rows it covers.

        A row that is merged as a whole heads others or is a note, and stays one cell.
        """
        said = [*self.said]
        if not any(
            text.strip() for at, text in enumerate(said) if at not in self.merged
        ):
            return said
        said += [""] * (max(self.merged, default=0) + 1 - len(said))
        for at, (_, text) in self.merged.items():
            said[at] = text
        return said

    @property
    def filled(self) -> list[str]:
        return [cell.strip() for cell in self.said if cell.strip()]

    @property
    def is_alone(self) -> bool:
        """Whether it has a single cell, as titles and notes do."""
        return len(self.filled) == 1


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a sheet.

    Attributes:
        number: The row in which its headings begin.
        heads: The number of its heading rows.
        above: The lines above all tables of the sheet, or above its only one.
        name: Its title, if the sheet has several tables.
        rows: The lines below its headings.
        foot: The lines below these, after an empty row.
    """

    number: int
    heads: int
    headings: Sequence[str]
    above: Sequence[Line]
    rows: Sequence[Line]
    name: str = ""
    foot: Sequence[Line] = ()


@dataclass(frozen=True, slots=True)
class _Begin:
    """Where headings begin, and the texts of the title lines right above them."""

    at: int
    heads: int
    headings: Sequence[str]
    titles: Sequence[str] = ()

    @property
    def below(self) -> int:
        return self.at + self.heads


def tables_of(
    lines: Sequence[Line], is_bold: Callable[[Line], bool]
) -> Sequence[Table]:
    """Return the tables of a sheet; a single one has all rows.

    Headings below a title or an empty row begin another table if the title is numbered
    ("Table 2"), or if they have two rows, repeat a heading from above, are as bold as the
    first ones, or, below a title, contain no number above a column of numbers.

    Args:
        is_bold: Returns whether all text of a line is bold.
    """
    only, at = only_table(lines)
    heads = only.heads
    found = [_Begin(at, heads, only.headings)]
    for here in range(at + heads, len(lines) - 1):
        if here >= found[-1].below and (begin := _begin(lines, here, found, is_bold)):
            found.append(begin)
    if len(found) == 1:
        return [only]
    above, name = _titles(lines[: at + 1], is_named=bool(found[1].titles))
    ends = [each.at - len(each.titles) for each in found[1:]]
    tables: list[Table] = []
    for begin, end in zip(found, [*ends, len(lines)], strict=True):
        rows, foot = _without_foot(lines[begin.below : end])
        called = " ".join(begin.titles) if tables else _words(name)
        number = lines[begin.at].number
        tables.append(
            Table(number, begin.heads, begin.headings, above, rows, called, foot)
        )
    return tables


def only_table(lines: Sequence[Line]) -> tuple[Table, int]:
    """Return all lines as one table, and the index at which its headings begin."""
    at = len(rows_above([line.said for line in lines[:SAMPLE]]))
    heads, headings = _headings(lines, at)
    rows = lines[at + heads :]
    return Table(lines[at].number, heads, headings, lines[:at], rows), at


def _titles(
    lines: Sequence[Line], *, is_named: bool
) -> tuple[Sequence[Line], Sequence[Line]]:
    """Split the lines above the first headings: for all tables, and for the first.

    Args:
        lines: End with the headings.
        is_named: Whether the other tables have titles.
    """
    said = lines[:-1]
    gaps = [at for at, two in enumerate(pairwise(lines), 1) if not _touch(*two)]
    if len(gaps) > 1 and gaps[-1] == len(said):
        gaps.pop()  # the first table's title has an empty row below it too
    cut = gaps[-1] if gaps else min(len(said), 1)
    if len(said) == 1 and not gaps and is_named:
        cut = 0
    return said[:cut], said[cut:]


def _words(lines: Iterable[Line]) -> str:
    return " ".join(chain.from_iterable(line.filled for line in lines))


def _touch(upper: Line, lower: Line) -> bool:
    """Return whether no empty row is between two lines."""
    return lower.number == upper.number + 1


def _without_foot(lines: Sequence[Line]) -> tuple[Sequence[Line], Sequence[Line]]:
    """Split off the single-cell lines after an empty row at the end of a table."""
    count = len(lines) - len([*takewhile(lambda each: each.is_alone, lines[::-1])])
    while 0 < count < len(lines) and _touch(lines[count - 1], lines[count]):
        count += 1
    return lines[:count], lines[count:]


def _begin(
    lines: Sequence[Line],
    at: int,
    before: Sequence[_Begin],
    is_bold: Callable[[Line], bool],
) -> _Begin | None:
    """Return the table whose headings begin at a line, or None."""
    line, first = lines[at : at + 2]
    if len(line.filled) < 2 or first.is_alone or not _touch(line, first):
        return None
    top = _top(lines, at, before[-1].below)
    titles = [" ".join(each.filled) for each in lines[top:at]]
    is_apart = not _touch(lines[top - 1], lines[top])
    if not titles and not is_apart:
        return None
    heads, headings = _headings(lines, at)
    above = lines[before[-1].below : top]
    is_counted = any(
        _COUNTED.match(title) and not _CONTINUED.search(title) for title in titles
    )
    is_as_bold = is_bold(line) and is_bold(lines[before[0].at]) and not is_bold(first)
    if (
        is_counted
        or heads > 1
        or is_as_bold
        or _repeats(headings, before, above)
        or (
            titles and is_apart and _is_above_numbers([line, *_block(lines, at)], above)
        )
    ):
        return _Begin(at, heads, headings, titles)
    return None


def _top(lines: Sequence[Line], at: int, last: int) -> int:
    """Return where the title of headings begins; an empty row may be below it."""
    top = at
    while (
        last < top
        and at - top < _MAX_TITLES
        and lines[top - 1].is_alone
        and _touch(lines[top - 1], lines[top])
    ):
        top -= 1
    if top < at or at - 2 < last or not lines[at - 1].is_alone:
        return top
    return at if _touch(lines[at - 2], lines[at - 1]) else at - 1


def _block(lines: Sequence[Line], at: int) -> Iterator[Line]:
    """Yield the rows directly below a line."""
    for upper, lower in pairwise(lines[at:]):
        if lower.is_alone or not _touch(upper, lower):
            return
        yield lower


def _repeats(
    headings: Sequence[str], before: Sequence[_Begin], above: Sequence[Line]
) -> bool:
    """Return whether headings repeat one of a table above, which no row has since."""
    said = [_plain(each) for each in headings]
    if said == [_plain(each) for each in before[-1].headings]:
        return True
    if any(map(_DIGIT.search, said[1:])):
        return False
    return any(
        len(each) > 1
        and each == _plain(heading)
        and each not in {_plain(row.at(column)) for row in above}
        for begin in before
        for column, (each, heading) in enumerate(
            zip(said, begin.headings, strict=False)
        )
    )


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _is_above_numbers(block: Sequence[Line], above: Sequence[Line]) -> bool:
    """Return whether the first line is words, new ones, above columns of numbers."""
    line, *rows = block
    columns = range(1, max(len(_trimmed(each.said)) for each in block))
    words = [line.at(column) for column in columns]
    are_headings = len(rows) >= _MIN_NUMBERS and not any(
        _DIGIT.search(word)
        or _NO_NUMBER.fullmatch(word)
        or any(word == row.at(column) for row in above)
        for column, word in zip(columns, words, strict=True)
    )
    return are_headings and any(
        all(_DIGIT.search(row.at(column)) for row in rows) for column in columns
    )


def _headings(lines: Sequence[Line], at: int) -> tuple[int, Sequence[str]]:
    """Return the number of heading lines from one on, and each column's heading."""
    near = [*lines[at : at + 1]]
    for line in lines[at + 1 : at + 1 + MAX_HEADS]:
        if _touch(near[-1], line):
            near.append(line)
    if len(near) > 2:
        width = max(len(line.said) for line in near)
        grid = [
            [
                line.merged.get(column, ((line.number, column), line.at(column)))
                for column in range(width)
            ]
            for line in near
        ]
        upper, lower = grid[:2]
        if not near[0].merged:
            _reach(upper, lower)
        if not upper[0][1]:
            upper[0] = lower[0]
        heads, headings = joined_headings(grid)
        if heads > 1:
            return heads, _trimmed(headings)
    return 1, _trimmed(near[0].said)


def _reach(upper: list[Cell], lower: Sequence[Cell]) -> None:
    """Extend headings over the empty cells to their right, as if they were merged.

    Only if each of these has a heading below it, and the first column has just one.
    """
    empty = [at for at, (_, text) in enumerate(upper) if at and not text]
    has_one = bool(upper[0][1]) != bool(lower[0][1])
    is_within = any(text for _, text in upper[empty[0] :]) if empty else False
    are_words = not any(_DIGIT.search(text) for _, text in lower)
    if has_one and (is_within or are_words) and all(lower[at][1] for at in empty):
        for at in empty:
            if at > 1 and upper[at - 1][1]:
                upper[at] = upper[at - 1]


def _trimmed(said: Sequence[str]) -> list[str]:
    cells = [*said]
    while cells and not cells[-1].strip():
        cells.pop()
    return cells
