"""Whether two entries are rows of tables, or tables, about different things."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from kb.text.layout import Kind, blocks_of, cell_spans
from kb.text.words import Span

from .values import Statement

_ONE_ROW: Final = 2  # lines, including the headings


@dataclass(frozen=True, slots=True)
class _Row:
    """The only row of a table: the table's introduction, its headings and its cells."""

    lead: str
    headings: Sequence[str]
    cells: Sequence[str]


def are_of_other_things(first: Statement, second: Statement) -> bool:
    """Return whether both are rows or tables about different things."""
    return _are_other_rows(first, second) or _are_other_tables(first, second)


def _are_other_tables(first: Statement, second: Statement) -> bool:
    """Return whether both are tables of one document with mostly the same rows.

    A document that lists the opening hours of the same places twice has them for two
    times of the year; which ones is stated in the headings above.
    """
    if first.document is None or first.document != second.document:
        return False
    one, other = _labels(first.text), _labels(second.text)
    return 2 * len(one & other) > max(len(one), len(other))


def _labels(text: str) -> frozenset[str]:
    """Return the first cells of a table's rows; empty if there is only one row."""
    lines = _only_table(text)
    if len(lines) <= _ONE_ROW:
        return frozenset()
    return frozenset(_cells(text, line)[0] for line in lines[1:])


def _are_other_rows(first: Statement, second: Statement) -> bool:
    """Return whether both are rows below the same headings, but about different things.

    Within one document they are if their introductions differ, or if their first
    differing cell contains words: "Pest control | Mice | £45" and "Pest control | Rats
    | £60" differ in their second column. For two documents, which may be versions of
    one, only the first cell counts.
    """
    one, other = _row(first.text), _row(second.text)
    if one is None or other is None or one.headings != other.headings:
        return False
    pairs = enumerate(zip(one.cells, other.cells, strict=False))
    at, unlike = next((x for x in pairs if x[1][0] != x[1][1]), (None, ()))
    if at is None:
        return False
    if at == 0:
        return True
    if first.document is None or first.document != second.document:
        return False
    return one.lead != other.lead or any(map(_in_words, unlike))


def _in_words(cell: str) -> bool:
    return not cell or any(map(str.isalpha, cell))


def _row(text: str) -> _Row | None:
    lines = _only_table(text)
    if len(lines) != _ONE_ROW:
        return None
    headings, cells = (_cells(text, line) for line in lines)
    return _Row(text[: lines[0].start].strip(), headings, cells)


@lru_cache(maxsize=4096)  # an entry is compared with one neighbour after another
def _only_table(text: str) -> Sequence[Span]:
    """Return the lines of a text's table; empty if it has none or several."""
    tables = [lines for kind, lines in blocks_of(text) if kind is Kind.TABLE]
    return tables[0] if len(tables) == 1 else ()


def _cells(text: str, line: Span) -> list[str]:
    return [
        " ".join(cell.within(text).split()).casefold()
        for cell in cell_spans(text, line)
    ]
