"""The layout of a text: paragraphs, lists and tables, recognized by the shape of lines.

A text contains no markup: blocks hold the plain text, which templates escape.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from django import template

from kb.text.layout import (
    Item,
    Kind,
    blocks_of,
    cell_spans,
    has_headings,
    item_span,
    items_of,
    number_of,
)
from kb.text.words import Span

register = template.Library()  # available in all templates, by the settings


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text; `citation` is a card's number, `is_short` marks a short answer."""

    text: str
    citation: int | None = None
    is_short: bool = False


Cell = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a list or a table, whose first row may hold its headings."""

    kind: Kind
    rows: tuple[tuple[Cell, ...], ...]  # of one cell each, except in a table
    first: int = 1  # number of a list's first item
    below: tuple[tuple["Block", ...], ...] = ()  # of a list: the blocks below each item
    has_headings: bool = False

    @property
    def cells(self) -> list[Cell]:
        """The paragraph, or the items of a list."""
        return [row[0] for row in self.rows]

    @property
    def items(self) -> list[tuple[Cell, tuple["Block", ...]]]:
        return list(zip(self.cells, self.below, strict=True))


@register.filter
def laid_out(said: str | Sequence[Piece]) -> tuple[Block, ...]:
    """Return the blocks of a text, or of its pieces with short answer and citations.

    All text is kept, except what only makes the shape: item marks, lines between cells.
    """
    pieces = (Piece(said),) if isinstance(said, str) else said
    text = "".join(piece.text for piece in pieces if piece.citation is None)
    blocks: list[Block] = []
    start = 0
    found = [*blocks_of(text)]
    for (kind, lines), behind in zip_longest(found, found[1:]):
        if kind is Kind.TEXT:
            blocks += _paragraph(pieces, text, lines)
        elif kind is Kind.TABLE:
            # Includes its ruled lines, of which the outer ones are not in `lines`.
            whole = Span(start, behind[1][0].start - 1 if behind else len(text))
            blocks.append(_table(pieces, text, lines, whole))
            start = whole.end + 1
            continue
        else:
            blocks.append(_list(pieces, text, kind, items_of(text, lines)))
        start = lines[-1].end + 1
    return tuple(blocks)


def followed_by(blocks: Sequence[Block], end: Sequence[Piece]) -> tuple[Block, ...]:
    """Append pieces to the last paragraph, or as a paragraph of their own."""
    if not end:
        return tuple(blocks)
    if not blocks or blocks[-1].kind is not Kind.TEXT:
        return (*blocks, Block(Kind.TEXT, ((tuple(end),),)))
    last = (*blocks[-1].cells[0], Piece(" "), *end)
    return (*blocks[:-1], Block(Kind.TEXT, ((last,),)))


def _paragraph(
    pieces: Sequence[Piece], text: str, lines: Sequence[Span]
) -> Iterator[Block]:
    """Yield a paragraph without the empty lines around it, unless nothing is left."""
    said = [line for line in lines if line.within(text).strip()]
    start, end = (said[0].start, said[-1].end) if said else (lines[-1].end,) * 2
    if cell := _cut(pieces, Span(start, end), Span(lines[0].start, lines[-1].end)):
        yield Block(Kind.TEXT, ((cell,),))


def _table(
    pieces: Sequence[Piece], text: str, lines: Sequence[Span], whole: Span
) -> Block:
    starts = [whole.start, *(line.start for line in lines[1:])]
    ends = [*(start - 1 for start in starts[1:]), whole.end]
    rows = tuple(
        tuple(_cells(pieces, cell_spans(text, line), Span(start, end)))
        for line, start, end in zip(lines, starts, ends, strict=True)
    )
    return Block(Kind.TABLE, rows, has_headings=has_headings(text, lines))


def _cells(pieces: Sequence[Piece], spans: Sequence[Span], row: Span) -> Iterator[Cell]:
    """Yield a row's cells; citations around them belong to the first or the last."""
    starts = [row.start, *(span.start for span in spans[1:])]
    ends = [*(span.end for span in spans[:-1]), row.end]
    for span, start, end in zip(spans, starts, ends, strict=True):
        yield _cut(pieces, span, Span(start, end))


def _list(
    pieces: Sequence[Piece], text: str, kind: Kind, items: Sequence[Item]
) -> Block:
    lines = [item.line for item in items]
    return Block(
        kind,
        tuple((_cut(pieces, item_span(text, line), line),) for line in lines),
        1 if (first := number_of(lines[0].within(text))) is None else first,
        tuple(
            tuple(_list(pieces, text, each.kind, each.items) for each in item.below)
            for item in items
        ),
    )


def _cut(pieces: Sequence[Piece], span: Span, around: Span) -> tuple[Piece, ...]:
    """Return the text within `span`, with the citations within `around`."""
    found = []
    at = 0
    for piece in pieces:
        if piece.citation is not None:
            if around.start <= at <= around.end:
                found.append(piece)
            continue
        text = piece.text[max(span.start - at, 0) : max(span.end - at, 0)]
        if text:
            found.append(Piece(text, is_short=piece.is_short))
        at += len(piece.text)
    return tuple(found)
