"""Ruled tables on a PDF's page: the cells that rules form, and their text."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pdfplumber.page import Page

from .pdf_parts import Line, Table, has_headings

_MAX_CROSSINGS = 8_000  # of rules; the cost is quadratic, and a drawing has more
_MAX_CELL_LENGTH = 1_000  # characters; with longer cells, rules only lay out the page
_MAX_CAPTION_LENGTH = 200  # likewise, of the text in a cell across all columns
_MIN_SPLIT_LINES = 3  # in the cells of a row that holds several, without rules

Box = tuple[float, float, float, float]  # x0, top, x1, bottom


def grids_of(page: Page) -> list[list[Box]]:
    """Return the cells of each ruled table, tables inside another's cell first."""
    edges = page.edges
    crossings = len({round(each["x0"]) for each in edges}) * len(
        {round(each["top"]) for each in edges}
    )
    if not edges or max(crossings, len(edges) / 2) > _MAX_CROSSINGS:
        return []
    found = [list(table.cells) for table in page.find_tables()]
    return sorted(found, key=lambda cells: sum(map(_area, cells)))


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def cell_of(word: Line, grids: Sequence[Sequence[Box]]) -> tuple[int, Box] | None:
    x, y = (word.x0 + word.x1) / 2, (word.top + word.bottom) / 2
    for number, cells in enumerate(grids):
        for cell in cells:
            if cell[0] <= x <= cell[2] and cell[1] <= y <= cell[3]:
                return number, cell
    return None


def ruled(cells: Sequence[Box], said: Mapping[Box, Sequence[Line]]) -> Table | None:
    """Return the table; None if the rules only frame something or lay out the page."""
    lefts = sorted({cell[0] for cell in cells})
    tops = sorted({cell[1] for cell in cells})
    caption: list[Line] = []
    if sum(cell[1] == tops[0] for cell in cells) == 1 < len(lefts):
        caption = [*said.get(next(cell for cell in cells if cell[1] == tops[0]), ())]
        tops = tops[1:]
        cells = [cell for cell in cells if cell[1] >= tops[0]] if tops else []
    longest = max(map(_length, said.values()))
    if (
        not cells
        or longest > _MAX_CELL_LENGTH
        or _length(caption) > _MAX_CAPTION_LENGTH
    ):
        return None
    across = sum(cell[1] == tops[0] for cell in cells) < len(lefts)
    heads = 2 if across and len(tops) > 2 else 1  # rows of headings
    grid: list[list[Sequence[Line]]] = [[()] * len(lefts) for _ in tops]
    for cell in cells:
        begin, end = bisect_left(lefts, cell[0]), bisect_left(lefts, cell[2] - 1)
        for row in range(bisect_left(tops, cell[1]), bisect_left(tops, cell[3] - 1)):
            # A heading counts for each column that it spans, a cell for each row.
            for column in range(begin, end if row < heads else begin + 1):
                grid[row][column] = said.get(cell, ())
    # The same lines only once, where a heading spans both of its rows.
    head: list[Sequence[Line]] = [
        list({id(line): line for cell in over for line in cell}.values())
        for over in zip(*grid[:heads], strict=True)
    ]
    rows = [row for each in (head, *grid[heads:]) for row in _split(each) if any(row)]
    kept = [at for at in range(len(lefts)) if any(row[at] for row in rows)]
    if len(kept) < 2 or len(rows) < 2:
        return None
    rows = [[row[at] for at in kept] for row in rows]
    return Table(
        tuple(
            tuple("\n".join(line.text for line in cell) for cell in row) for row in rows
        ),
        tuple(lefts[at] for at in kept),
        tops[0],
        max(cell[3] for cell in cells),
        " ".join(line.text for line in caption),
        is_headed=has_headings(rows, default=True),
    )


def _length(lines: Iterable[Line]) -> int:
    return sum(len(line.text) for line in lines)


def _split(row: Sequence[Sequence[Line]]) -> Iterator[list[Sequence[Line]]]:
    """Split a row that holds several rows without rules between them."""
    filled = [cell for cell in row if cell]
    most = max(map(len, filled), default=0)
    even = [cell for cell in filled if len(cell) == most]
    if (
        most < _MIN_SPLIT_LINES
        or len(even) < max(2, len(filled) / 2)
        or any(line.text[0].islower() for cell in even for line in cell)
        or not all(
            line.is_beside(first)
            for cell in even
            for line, first in zip(cell, even[0], strict=True)
        )
    ):
        yield list(row)
        return
    for at, first in enumerate(even[0]):
        above = even[0][at - 1].bottom + 1 if at else float("-inf")
        last = at == most - 1
        yield [
            [
                line
                for line in cell
                if above < line.bottom and (last or line.bottom <= first.bottom + 1)
            ]
            for cell in row
        ]
