"""A text's paragraphs, lists and tables, and the parts that can be read alone.

Only the shape of lines counts, as imports write and people type them. Two or more
neighbouring lines with the same bullet, or with consecutive numbers, are a list; items
indented further are below them. Such lines with ` | ` between their cells are a table,
whose first row holds its headings if a rule is below it, or if it looks unlike the rows
below.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate, islice, takewhile, zip_longest
from typing import Final

from .vocabulary import STOP_WORDS
from .words import Span, sentence_spans

_BULLET: Final = re.compile(r"[ \t]*([-*\u2022\u2013])[ \t]+(?=\S)")
_NUMBER: Final = re.compile(r"[ \t]*(\d{1,3})[.)][ \t]+(?=\S)")
_BETWEEN_CELLS: Final = re.compile(r"(?<!\S)\|(?!\S)")
_DIGIT: Final = re.compile(r"\d")
_SAID: Final = re.compile(r"[^\W\d_]+")
_LEAD: Final = 200  # characters of an introduction that is read with each item
_DEEPEST: Final = 40  # characters of an indent
_RULE: Final = re.compile(r"(?=.*-)(?=.*\|)[|: \t-]+")  # below typed headings


class Kind(StrEnum):
    TEXT = "text"
    BULLETS = "bullets"
    NUMBERS = "numbers"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Item:
    """A line of a list, and the lists below it."""

    line: Span
    below: tuple["Listed", ...] = ()


@dataclass(frozen=True, slots=True)
class Listed:
    kind: Kind
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A sentence, an item, a row, or a cell of the only row of a wide table.

    Attributes:
        span: Where it is in the text, without an item's bullet or number.
        read: Its text as read alone: a row with its column headings, a cell with the
            row's first cell, an item with the one above it, all with the line that
            introduces them.
    """

    span: Span
    read: str


def blocks_of(text: str) -> Iterator[tuple[Kind, Sequence[Span]]]:
    """Yield the lines of each paragraph, list and table, without a table's rule.

    All lines between lists and tables are one paragraph, including empty ones.
    """
    said = text.split("\n")
    starts = accumulate((len(line) + 1 for line in said), initial=0)
    lines = [
        Span(start, start + len(line))
        for start, line in zip(starts, said, strict=False)
    ]
    at = loose = 0
    while at < len(lines):
        kind, count = _shape(said, at)
        if kind is not Kind.TEXT:
            if loose < at:
                yield Kind.TEXT, lines[loose:at]
            loose = at + count
            yield (
                kind,
                [
                    line
                    for line in lines[at:loose]
                    if not _RULE.fullmatch(line.within(text))
                ],
            )
        at += count
    if loose < at:
        yield Kind.TEXT, lines[loose:]


def items_of(text: str, lines: Sequence[Span]) -> tuple[Item, ...]:
    """Return the items of a list, each with the lists below it."""
    found, _ = _listed([line.within(text) for line in lines], lines, 0)
    return found.items


def item_span(text: str, line: Span) -> Span:
    """Return the span of an item without its bullet or number."""
    said = line.within(text)
    mark = _BULLET.match(said) or _NUMBER.match(said)
    return Span(line.start + (mark.end() if mark else 0), line.end)


def number_of(line: str) -> int | None:
    found = _NUMBER.match(line)
    return int(found[1]) if found else None


def cell_spans(text: str, line: Span) -> list[Span]:
    """Return the spans between the bars of a row, including the spaces around."""
    said = line.within(text)
    start = line.start + len(said) - len(said.lstrip())
    end = max(start, line.start + len(said.rstrip()))
    if end - start > 1 and text[start] == text[end - 1] == "|":
        start, end = start + 1, end - 1
    bars = [each.start() for each in _BETWEEN_CELLS.finditer(text, start, end)]
    starts = [start, *(bar + 1 for bar in bars)]
    return [Span(*each) for each in zip(starts, [*bars, end], strict=True)]


def parts_of(text: str) -> tuple[Part, ...]:
    """Return the parts that can be read alone: no table headings, no lead lines."""
    found: list[Part] = []
    for kind, lines in blocks_of(text):
        lead = ""
        if kind is not Kind.TEXT and found and found[-1].read.endswith(":"):
            lead = f"{found.pop().read[-_LEAD:]} "
        own = _parts(text, kind, lines)
        found += (Part(part.span, lead + part.read) for part in own)
    return tuple(found)


def written_out(text: str) -> str:
    """Return a text with each table cell after its column's heading."""
    blocks = [*blocks_of(text)]
    if all(kind is not Kind.TABLE for kind, _ in blocks):
        return text
    return "\n".join(
        "\n".join(row.read for row in _rows(text, lines))
        if kind is Kind.TABLE
        else text[lines[0].start : lines[-1].end]
        for kind, lines in blocks
    )


def is_row(text: str) -> bool:
    """Return whether a text is one row of a table, below its headings and a rule.

    A short line that ends with a colon may introduce it.
    """
    *above, (kind, lines) = blocks_of(text)
    if kind is not Kind.TABLE or len(lines) != 2 or len(above) > 1:
        return False
    between = text[lines[0].end : lines[1].start].strip()
    lead = text[: lines[0].start].strip()
    return (
        _RULE.fullmatch(between) is not None
        and len(lead) <= _LEAD
        and (not lead or lead.endswith(":"))
    )


def _shape(lines: Sequence[str], at: int) -> tuple[Kind, int]:
    """Return the kind of block that begins at a line, and its number of lines."""
    if _is_item(lines[at]):
        found, end = _listed(lines, (), at)
        if end - at > 1:
            return found.kind, end - at
    width = _width(lines[at])
    if width > 1:
        below = islice(lines, at + 1, None)
        count = 1 + _count(
            1 < _width(line) <= width or _RULE.fullmatch(line) is not None
            for line in below
        )
        if any(not _RULE.fullmatch(line) for line in lines[at + 1 : at + count]):
            return Kind.TABLE, count
        return Kind.TEXT, count  # of rules, skipped so that each is read only once
    return Kind.TEXT, 1


def _listed(
    said: Sequence[str], lines: Sequence[Span], at: int, above: int = -1
) -> tuple[Listed, int]:
    """Return the list that begins at a line, and its end; without `lines` its kind.

    It continues with the same bullet or the next number, after any lists below its
    items, as long as it is indented further than the item above it.
    """
    bullet, number = _bullet_of(said[at]), number_of(said[at])
    indent = _indent(said[at])
    items: list[Item] = []
    while at < len(said) and _is_item(said[at]) and _indent(said[at]) > above:
        if items and _indent(said[at]) > indent:
            below, at = _listed(said, lines, at, indent)
            items[-1] = replace(items[-1], below=(*items[-1].below, below))
            continue
        due = None if number is None else number + len(items)
        if (_bullet_of(said[at]), number_of(said[at])) != (bullet, due):
            break
        items.append(Item(lines[at] if lines else Span(0, 0)))
        at += 1
    kind = Kind.BULLETS if number is None else Kind.NUMBERS
    return Listed(kind, tuple(items)), at


def _is_item(line: str) -> bool:
    return _bullet_of(line) != "" or number_of(line) is not None


def _indent(line: str) -> int:
    spread = line.expandtabs(4)
    return min(len(spread) - len(spread.lstrip()), _DEEPEST)


def _count(holds: Iterator[bool]) -> int:
    return sum(1 for _ in takewhile(bool, holds))


def _bullet_of(line: str) -> str:
    found = _BULLET.match(line)
    return found[1] if found else ""


def _width(line: str) -> int:
    return len(cell_spans(line, Span(0, len(line))))


def _parts(text: str, kind: Kind, lines: Sequence[Span]) -> Iterator[Part]:
    if kind is Kind.TABLE:
        rows = [*_rows(text, lines)]
        cells = [*_row_cells(text, lines)] if len(rows) == 1 else []
        yield from cells if len(cells) >= _MIN_CELLS else rows
    elif kind is Kind.TEXT:
        start = lines[0].start
        for each in sentence_spans(text[start : lines[-1].end]):
            span = Span(start + each.start, start + each.end)
            yield Part(span, span.within(text).strip())
    else:
        yield from _items(text, items_of(text, lines))


def _items(text: str, items: Sequence[Item]) -> Iterator[Part]:
    """Yield the items, each with those above it, without ones that only introduce."""
    for item in items:
        span = item_span(text, item.line)
        said = span.within(text).strip()
        if not (item.below and said.endswith(":")):
            yield Part(span, said)
        lead = f"{said.rstrip(' .,;:')}:"
        for each in item.below:
            for part in _items(text, each.items):
                yield Part(part.span, f"{lead} {part.read}")


def _rows(text: str, lines: Sequence[Span]) -> Iterator[Part]:
    """Yield the rows below any headings, with the headings before the cells."""
    rows = [_cells(text, line) for line in lines]
    headings: list[str] = []
    if _is_headed(text, lines, rows):
        headings, *rows = rows
    for line, cells in zip(lines[len(lines) - len(rows) :], rows, strict=True):
        said = [cells[0]] + [
            f"{heading}: {cell}" if heading else cell
            for heading, cell in zip_longest(headings[1:], cells[1:], fillvalue="")
            if cell
        ]
        yield Part(line, " ".join(f"{each}." for each in said if each))


_MIN_CELLS = 4  # besides the first, of a row that is too long to be read as one


def _row_cells(text: str, lines: Sequence[Span]) -> Iterator[Part]:
    """Yield the cells of a table's only row, each after the row's first one."""
    first, *others = _cells(text, lines[-1])
    headings = _cells(text, lines[0])[1:] if len(lines) > 1 else []
    spans = cell_spans(text, lines[-1])[1:]
    for span, heading, cell in zip_longest(spans, headings, others, fillvalue=""):
        if isinstance(span, Span) and cell:
            said = f"{heading}: {cell}" if heading else cell
            yield Part(span, f"{first}. {said}.")


def _cells(text: str, line: Span) -> list[str]:
    return [cell.within(text).strip().rstrip(".:") for cell in cell_spans(text, line)]


def has_headings(text: str, lines: Sequence[Span]) -> bool:
    """Return whether a table's first row holds headings.

    It does if a rule is below it. Otherwise it does not if a cell resembles one below:
    "full price" over "half price", "40 mg" over "5 mg"; nor, in the first column, if
    both contain a number.
    """
    return _is_headed(text, lines, [_cells(text, line) for line in lines])


def _is_headed(text: str, lines: Sequence[Span], rows: Sequence[Sequence[str]]) -> bool:
    if len(lines) == 1:  # the rule was above it
        return False
    below = text[lines[0].end + 1 : lines[1].start].strip()
    if _RULE.fullmatch(below):
        return True
    first, *others = rows
    return not any(
        _is_alike(first[at], row[at], is_name=at == 0)
        for row in others
        for at in range(min(len(first), len(row)))
    )


def _is_alike(one: str, other: str, *, is_name: bool) -> bool:
    are_counted = bool(_DIGIT.search(one) and _DIGIT.search(other))
    if is_name and not are_counted:
        return False
    words, others = (
        set(_SAID.findall(each.lower())) - STOP_WORDS for each in (one, other)
    )
    return bool(words & others) and (are_counted or one == other or not words <= others)
