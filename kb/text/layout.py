"""What of a text stands by itself: its sentences, the items of its lists, the rows of its tables.

A row says little without its columns' headings, and an item little without the line that
introduces it: both are read with them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from .words import Span, sentence_spans

_LINE: Final = re.compile(r"\S(?:[^\n]*\S)?")
_MARK: Final = re.compile(r"(?:[-*\u2022\u2013]|\d{1,2}[.)])\s+(?=\S)")
_BETWEEN_CELLS: Final = re.compile(r"(?<!\S)\|(?!\S)")
_RULE: Final = re.compile(r"[|:\s-]*-[|:\s-]*")  # below the headings of a typed table
_PLAIN, _ITEMS = 0, -1  # kinds of lines; of a table's it is how many cells they have


@dataclass(frozen=True, slots=True)
class Part:
    """A sentence, an item or a row.

    Attributes:
        span: Where it is in the text, without an item's bullet or number.
        read: What it says by itself.
    """

    span: Span
    read: str


def parts_of(text: str) -> tuple[Part, ...]:
    """Return what of a text stands by itself; a table's headings and a list's lead don't."""
    blocks = list(_blocks(text))
    if all(kind == _PLAIN for kind, _ in blocks):
        spans = sentence_spans(text)
        return tuple(Part(each, each.within(text).strip()) for each in spans)
    found: list[Part] = []
    for kind, lines in blocks:
        lead = ""
        if kind != _PLAIN and found and found[-1].read.endswith(":"):
            lead = f"{found.pop().read} "
        found += (
            Part(part.span, lead + part.read) for part in _parts(text, kind, lines)
        )
    return tuple(found)


def written_out(text: str) -> str:
    """Return a text with each cell of its tables behind its column's heading."""
    blocks = list(_blocks(text))
    if all(kind <= _PLAIN for kind, _ in blocks):
        return text
    said: list[str] = []
    for kind, lines in blocks:
        if kind > _PLAIN:
            said += (part.read for part in _rows(text, lines))
        else:
            said += (line.within(text) for line in lines)
    return "\n".join(said)


def _blocks(text: str) -> Iterator[tuple[int, Sequence[Span]]]:
    """Yield lines of one kind with it; one line alone makes no list and no table."""
    spans = (
        Span(*line.span())
        for line in _LINE.finditer(text)
        if not _RULE.fullmatch(line[0])
    )
    for kind, lines in groupby(spans, key=lambda span: _kind(span.within(text))):
        together = tuple(lines)
        yield kind if len(together) > 1 else _PLAIN, together


def _kind(line: str) -> int:
    if (cells := len(_cells(line))) > 1:
        return cells
    return _ITEMS if _MARK.match(line) else _PLAIN


def _parts(text: str, kind: int, lines: Sequence[Span]) -> Iterator[Part]:
    if kind > _PLAIN:
        yield from _rows(text, lines)
        return
    for line in lines:
        said = line.within(text)
        if kind == _ITEMS and (mark := _MARK.match(said)):
            yield Part(Span(line.start + mark.end(), line.end), said[mark.end() :])
            continue
        for each in sentence_spans(said):
            span = Span(line.start + each.start, line.start + each.end)
            yield Part(span, span.within(text).strip())


def _rows(text: str, lines: Sequence[Span]) -> Iterator[Part]:
    """Yield the rows below the first, which holds the headings."""
    headings, *rows = (_cells(line.within(text)) for line in lines)
    for line, cells in zip(lines[1:], rows, strict=True):
        said = [cells[0]] + [
            f"{heading}: {cell}" if heading else cell
            for heading, cell in zip(headings[1:], cells[1:], strict=True)
            if cell
        ]
        yield Part(line, " ".join(f"{each}." for each in said if each))


def _cells(line: str) -> list[str]:
    if len(line) > 1 and line[0] == line[-1] == "|":
        line = line[1:-1]
    return [cell.strip().rstrip(".:") for cell in _BETWEEN_CELLS.split(line)]
