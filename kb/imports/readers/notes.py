"""The notes below a table that marks in its cells refer to: "¹", "*", "1)" and such."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from .header import Row
from .stacked import Line, Table

_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_SIGN = rf"[{_RAISED}]+|\*{{1,3}}|†+|‡+|\[\d{{1,2}}\]"
_MARK = rf"{_SIGN}|\(?\d{{1,2}}\)"
_NOTE = re.compile(rf"(?P<mark>{_MARK})(?!\*)\s*(?=[^\W\d_]|\S{{3}}|\S+ )\S.*")
_OF_ITS_OWN = re.compile(_SIGN)
_INTRODUCED = re.compile(
    r"(?:foot)?notes?|(?:fu(?:ß|ss)note|anmerkung)(?:en)?|hinweise?", re.IGNORECASE
)
_RAISED_MARK = re.compile(rf"[{_RAISED}]+")
_METRES = re.compile(r"(?:^|[\s\d/(])[kcdm]?m$", re.IGNORECASE)  # squared or cubed
_LAST_MARK = re.compile(r"(?:^|[^*†‡(])(\*{1,3}|†+|‡+|\[\d{1,2}\]|\(?\d{1,2}\))$")
_CELL_END = re.compile(r" \||\n|: |:$")


@dataclass(frozen=True, slots=True)
class _Notes:
    """The text of the notes below a table and their lines, by mark."""

    said: Mapping[str, str]
    lines: Mapping[str, Sequence[Line]]

    @classmethod
    def below(cls, table: Table) -> "_Notes":
        said: dict[str, str] = {}
        lines: dict[str, list[Line]] = {}
        for line in (*table.rows, *table.foot):
            for mark, text in _read(line):
                said[mark] = f"{said[mark]} {text}" if mark in said else text
                lines.setdefault(mark, []).append(line)
        return cls(said, lines)


def with_notes(tables: Sequence[Table]) -> Iterator[tuple[Table, Mapping[str, str]]]:
    """Yield each table without the notes that are referred to, and its notes by mark.

    A mark refers to the note below its table, or else to the one below the last table.
    """
    below = [_Notes.below(table) for table in tables]
    all_marks: list[set[str]] = []
    read: dict[
        int, set[str]
    ] = {}  # by row of the sheet, the marks that are referred to
    for table, own in zip(tables, below, strict=True):
        last = below[-1]
        marks = _marks_in(table, {*own.said, *last.said})
        all_marks.append(marks)
        for mark in marks:
            for line in (own if mark in own.said else last).lines[mark]:
                read.setdefault(line.number, set()).add(mark)
    for table, own, marks in zip(tables, below, all_marks, strict=True):
        said = {**below[-1].said, **own.said}
        yield (
            replace(table, rows=_rest(table.rows, read), foot=_rest(table.foot, read)),
            {mark: text for mark, text in said.items() if mark in marks},
        )


def noted(row: Row, notes: Mapping[str, str]) -> Row:
    """Return a row with each note that it refers to appended on a line of its own."""
    name = next((x for x in ("answer", "text") if row.cells.get(x)), "")
    said = " | ".join(row.cells.values())
    met = _marks(_CELL_END.split(said), {*notes})
    behind = [notes[mark] for mark in notes if mark in met]
    if not name or not behind:
        return row
    text = "\n".join([row.cells[name], *behind])
    return replace(row, cells={**row.cells, name: text})


def _read(line: Line) -> list[tuple[str, str]]:
    """Return the marks that a line explains, each with its note as written."""
    said = line.filled
    if len(said) == 2 and _OF_ITS_OWN.fullmatch(said[0]):
        return [(said[0], " ".join(said))]
    if len(said) != 1:
        return []
    found = [
        (match["mark"], text) if (match := _NOTE.fullmatch(text)) else None
        for text in map(str.strip, said[0].splitlines())
    ]
    notes = [each for each in found if each]
    return notes if len(notes) == len(found) else []


def _marks_in(table: Table, able: set[str]) -> set[str]:
    rows = (line for line in table.rows if not _read(line))
    cells = (cell for line in rows for cell in line.said)
    above = (said for line in table.above for said in line.filled)
    return _marks((*above, table.name, *table.headings, *cells), able)


def _marks(cells: Iterable[str], able: set[str]) -> set[str]:
    """Return which marks of `able` the cells contain."""
    found: set[str] = set()
    for cell in cells if able else ():
        for match in _RAISED_MARK.finditer(cell):
            if not _METRES.search(cell[: match.start()]):
                mark = match[0]
                found |= {mark} if mark in able else {*mark}
        if last := _LAST_MARK.search(cell.strip()):
            found.add(last[1])
    return found & able


def _rest(lines: Sequence[Line], read: Mapping[int, set[str]]) -> Sequence[Line]:
    """Drop lines whose notes are all used, and the lines that introduce only these."""

    def is_read(line: Line) -> bool:
        return (
            line.number in read
            and {mark for mark, _ in _read(line)} <= read[line.number]
        )

    return [
        line
        for line, after in zip_longest(lines, lines[1:])
        if not is_read(line)
        and not (after is not None and _introduces(line) and is_read(after))
    ]


def _introduces(line: Line) -> bool:
    said = line.filled
    return len(said) == 1 and _INTRODUCED.fullmatch(said[0].rstrip(":")) is not None
