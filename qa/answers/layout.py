"""How a text is laid out on a page: its paragraphs, lists and tables, by the shape of its lines.

Only lines as imports write them count: `- ` or `* ` and numbers that go on begin items, and
` | ` stands between the cells of rows, the first of which is the heading. Nothing in a
text is markup: blocks hold the text itself, which templates escape.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile

from django import template

register = template.Library()  # a built-in of all templates, by the settings

_BULLET = re.compile(r"[ \t]*([-*])[ \t]+(?=\S)")
_NUMBER = re.compile(r"[ \t]*(\d{1,3})\.[ \t]+(?=\S)")
_BETWEEN_CELLS = re.compile(r"(?:(?<=\s)|^)\|(?=\s|$)")


@dataclass(frozen=True, slots=True)
class Piece:
    """Text; `citation` is the number of its card, `is_short` marks the words that answer."""

    text: str
    citation: int | None = None
    is_short: bool = False


class Kind(StrEnum):
    TEXT = "text"
    BULLETS = "bullets"
    NUMBERS = "numbers"
    TABLE = "table"


Cell = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a list or a table; the first of a table's rows is its heading."""

    kind: Kind
    rows: tuple[tuple[Cell, ...], ...]  # of one cell but in a table
    first: int = 1  # number of a list's first item

    @property
    def cells(self) -> list[Cell]:
        """The paragraph, or the items of a list."""
        return [row[0] for row in self.rows]


@register.filter
def laid_out(said: str | Sequence[Piece]) -> tuple[Block, ...]:
    """Return the blocks of a text, or of the pieces of one with its marks and citations.

    Every piece stays, but for what makes the shape: marks of items, lines between cells.
    """
    pieces = (Piece(said),) if isinstance(said, str) else said
    text = "".join(piece.text for piece in pieces if piece.citation is None)
    lines = list(_lines(text))
    blocks: list[Block] = []
    at = loose = 0
    while at < len(lines):
        kind, count = _shape([line for _, line in lines[at:]])
        if kind is not Kind.TEXT:
            blocks += _paragraph(pieces, lines[loose:at])
            blocks.append(_block(pieces, kind, lines[at : at + count]))
            loose = at + count
        at += count
    return (*blocks, *_paragraph(pieces, lines[loose:]))


def followed_by(blocks: Sequence[Block], end: Sequence[Piece]) -> tuple[Block, ...]:
    """Return the blocks with pieces at the end of the last paragraph, or in one of their own."""
    if not end:
        return tuple(blocks)
    if not blocks or blocks[-1].kind is not Kind.TEXT:
        return (*blocks, Block(Kind.TEXT, ((tuple(end),),)))
    last = (*blocks[-1].cells[0], Piece(" "), *end)
    return (*blocks[:-1], Block(Kind.TEXT, ((last,),)))


_Line = tuple[int, str]  # with the place where it begins


def _lines(text: str) -> Iterator[_Line]:
    start = 0
    for line in text.split("\n"):
        yield start, line
        start += len(line) + 1


def _shape(lines: Sequence[str]) -> tuple[Kind, int]:
    """Return what begins with these lines, and how many of them it takes."""
    if bullet := _BULLET.match(lines[0]):
        same = takewhile(lambda mark: mark == bullet[1], map(_bullet_of, lines))
        if (count := len(list(same))) > 1:
            return Kind.BULLETS, count
    if number := _NUMBER.match(lines[0]):
        first = int(number[1])
        ordered = (_number_of(line) == first + n for n, line in enumerate(lines))
        if (count := len(list(takewhile(bool, ordered)))) > 1:
            return Kind.NUMBERS, count
    rows = list(takewhile(lambda cells: cells > 1, map(_count_cells, lines)))
    if len(rows) < 2 or max(rows) > rows[0]:  # a cell without a heading
        return Kind.TEXT, max(len(rows), 1)
    return Kind.TABLE, len(rows)


def _bullet_of(line: str) -> str:
    found = _BULLET.match(line)
    return found[1] if found else ""


def _number_of(line: str) -> int | None:
    found = _NUMBER.match(line)
    return int(found[1]) if found else None


def _count_cells(line: str) -> int:
    return 1 + len(_BETWEEN_CELLS.findall(line))


def _paragraph(pieces: Sequence[Piece], lines: Sequence[_Line]) -> Iterator[Block]:
    """Yield a paragraph of lines without the empty ones around it, if there is something."""
    if not lines:
        return
    whole = (lines[0][0], lines[-1][0] + len(lines[-1][1]))
    said = [(start, start + len(line)) for start, line in lines if line.strip()]
    start, end = (said[0][0], said[-1][1]) if said else (whole[1], whole[1])
    if cell := _cut(pieces, start, end, *whole):
        yield Block(Kind.TEXT, ((cell,),))


def _block(pieces: Sequence[Piece], kind: Kind, lines: Sequence[_Line]) -> Block:
    if kind is Kind.TABLE:
        return Block(kind, tuple(_row(pieces, start, line) for start, line in lines))
    mark = _BULLET if kind is Kind.BULLETS else _NUMBER
    rows = []
    for start, line in lines:
        found, end = mark.match(line), start + len(line)
        after = start + found.end() if found else start
        rows.append((_cut(pieces, after, end, start, end),))
    first = _number_of(lines[0][1]) if kind is Kind.NUMBERS else None
    return Block(kind, tuple(rows), 1 if first is None else first)


def _row(pieces: Sequence[Piece], start: int, line: str) -> tuple[Cell, ...]:
    ends = [start + found.start() for found in _BETWEEN_CELLS.finditer(line)]
    starts = [start, *(end + 1 for end in ends)]
    bounds = zip(starts, [*ends, start + len(line)], strict=True)
    return tuple(_cut(pieces, first, last, first, last) for first, last in bounds)


def _cut(
    pieces: Sequence[Piece], start: int, end: int, since: int, until: int
) -> tuple[Piece, ...]:
    """Return the text from `start` to `end`, and the citations from `since` to `until`."""
    found = []
    at = 0
    for piece in pieces:
        if piece.citation is not None:
            if since <= at <= until:
                found.append(piece)
            continue
        text = piece.text[max(start - at, 0) : max(end - at, 0)]
        if text:
            found.append(Piece(text, is_short=piece.is_short))
        at += len(piece.text)
    return tuple(found)
