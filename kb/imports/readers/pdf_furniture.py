"""Lines that recur at the top or bottom of pages, and tables of contents."""

import re
from collections import defaultdict
from collections.abc import Collection, Sequence

from .blocks import Block, Kind
from .pdf_contents import contents_of
from .pdf_parts import Line, Part, Table

_NUMBER = re.compile(r"\d+")
_ROMAN = re.compile(r"[ivxl]{1,6}", re.IGNORECASE)
_MAX_LINES = 6  # of recurring lines at either end of a page
_BLANK = 0.6  # gap between them and the text, in line heights

_Place = tuple[str, int]  # a line's text without numbers, and its position


def without_furniture(
    pages: Sequence[Sequence[Part]],
) -> tuple[list[list[Part]], list[Block]]:
    """Return the pages without their recurring lines, and each such line once.

    A line recurs if it is on three pages, or on both of two, outside the text: a line
    left out by mistake is knowledge that nobody finds. Tables of contents are left out
    too.
    """
    known = _recurring(pages)
    texts: list[list[Part]] = []
    furniture: dict[_Place, Block] = {}
    for number, page in enumerate(pages, start=1):
        text: list[Part] = []
        for part in page:
            if isinstance(part, Line) and _is_outside(part, page, known):
                block = Block(Kind.FURNITURE, (part.text,), f"page {number}")
                furniture.setdefault(_place(part), block)
            else:
                text.append(part)
        texts.append(text)
    tables = contents_of(texts)
    contents = [
        Block(
            Kind.FURNITURE, tuple(row.text for row in rows), f"page {rows[0].page + 1}"
        )
        for rows in tables
    ]
    gone = {id(part) for rows in tables for row in rows for part in row.parts}
    texts = [[part for part in page if id(part) not in gone] for page in texts]
    return texts, [*furniture.values(), *contents]


def _place(line: Line) -> _Place:
    said = "" if _ROMAN.fullmatch(line.text) else line.text
    return _NUMBER.sub("#", said), round(line.top)


def _recurring(pages: Sequence[Sequence[Part]]) -> set[_Place]:
    found: dict[_Place, dict[int, list[int]]] = defaultdict(dict)
    for number, page in enumerate(pages):
        for part in page:
            if isinstance(part, Line):
                numbers = list(map(int, _NUMBER.findall(part.text[:200])))
                found[_place(part)][number] = numbers
    fewest = 2 if len(pages) == 2 else 3
    return {
        place
        for place, by_page in found.items()
        if len(by_page) >= fewest and _are_of_pages(by_page)
    }


def _are_of_pages(by_page: dict[int, list[int]]) -> bool:
    """Return whether each number is the same on all pages, or counts the pages."""
    rows = list(by_page.values())
    if len(set(map(len, rows))) > 1:
        return True  # Roman numerals on some pages
    return all(
        len(set(column)) == 1
        or len({n - page for n, page in zip(column, by_page, strict=True)}) == 1
        for column in zip(*rows, strict=True)
    )


def _is_outside(line: Line, page: Sequence[Part], known: Collection[_Place]) -> bool:
    """Return whether only recurring lines are between a line and the page's edge.

    It must also keep a distance from the text, unlike the column headings of a table.
    """
    if _place(line) not in known:
        return False
    if not line.size:
        return True
    over = [
        part
        for part in page
        if part is not line and (isinstance(part, Table) or part.shares_width(line))
    ]
    above = [part for part in over if part.top < line.top]
    below = [part for part in over if part.top > line.top]
    for outer, inner in ((above, below), (below, above)):
        is_first = len(outer) < _MAX_LINES and all(
            isinstance(part, Line) and _place(part) in known for part in outer
        )
        blanks = [
            max(part.top - line.bottom, line.top - part.bottom)
            for part in inner
            if isinstance(part, Table) or _place(part) not in known
        ]
        if is_first and min(blanks, default=line.height) >= _BLANK * line.height:
            return True
    return False
