"""Whether two entries are rows of tables that tell of different things."""

from collections.abc import Sequence
from dataclasses import dataclass

from kb.text.layout import Kind, blocks_of, cell_spans

from .values import Statement


@dataclass(frozen=True, slots=True)
class _Row:
    """A table's only row: what introduces the table, its headings and its cells."""

    lead: str
    headings: Sequence[str]
    cells: Sequence[str]


def are_of_other_things(first: Statement, second: Statement) -> bool:
    """Tell whether both are rows below the same headings, and not of the same thing.

    Rows of one document are if what leads them or their first unlike cell is in words:
    "Pest control | Mice | £45" and "Pest control | Rats | £60" are kept apart by their
    second column. Of two documents, which may be versions of one, the first cell decides.
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
    blocks = list(blocks_of(text))
    tables = [lines for kind, lines in blocks if kind is Kind.TABLE]
    if len(tables) != 1 or len(tables[0]) != 2:
        return None
    headings, cells = (
        [" ".join(cell.within(text).split()).casefold() for cell in cell_spans(text, x)]
        for x in tables[0]
    )
    return _Row(text[: tables[0][0].start].strip(), headings, cells)
