"""Headings, paragraphs, lists and tables of the lines that a PDF's pages hold."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from .blocks import Block, Kind, bullet, table_row
from .pdf_furniture import LEADERS
from .pdf_parts import Line, Part, Table
from .pdf_words import HYPHEN, joined, words_of
from .plain_text import ITEM

_LARGER = 1.12  # than the text, of a heading's letters
_MAX_HEADING_LENGTH = 150  # characters
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2}){0,5})\.?\s+[^\W\d_]")
_END = re.compile(r"[.!?:;][)\"”“']?$")
_PITCH = 1.2  # from one line of a paragraph to the next, in sizes of a letter
_NEXT_LINE = 1.25  # of that, at most, to a paragraph's next line
_NEXT_ITEM = 2.2  # likewise, to a list's next item
_INDENT = 3.0  # points from which on a line begins further in
_COLUMN = 60.0  # likewise, in another column

Style = tuple[float, bool, int]  # of a heading, the outermost's first
Outline = Mapping[int, Sequence[tuple[int, str]]]  # levels and titles by 0-based page


def blocks_of(pages: Sequence[Sequence[Part]], outline: Outline) -> Iterator[Block]:
    """Yield the blocks of a document; the outline's titles say what is a heading too.

    Where no line looks like a heading, the titles lead their pages.
    """
    found = _Reader(pages, outline).read()
    styles = sorted({each.style for each in found if each.style})
    led = 0
    for each in found:
        while not styles and led < each.page:
            for level, title in outline.get(led, ()):
                yield Block(Kind.HEADING, (title,), f"page {led + 1}", level)
            led += 1
        level = styles.index(each.style) + 1 if each.style else 1
        yield Block(each.kind, tuple(each.lines), each.place, level)


@dataclass(slots=True)
class _Found:
    kind: Kind
    lines: list[str]
    page: int
    place: str
    style: Style | None = None


@dataclass(slots=True)
class _Open:
    """A block whose lines are being taken: of a list by items, of others all in one."""

    kind: Kind
    page: int
    items: list[list[Line]]
    style: Style | None = None

    @property
    def last(self) -> Line:
        return self.items[-1][-1]


class _Reader:
    def __init__(self, pages: Sequence[Sequence[Part]], outline: Outline) -> None:
        self._pages = [_with_rows_joined(page) for page in pages]
        self._titles = {
            number: {_plain(title): level for level, title in titles}
            for number, titles in outline.items()
        }
        lines = [
            part for page in self._pages for part in page if isinstance(part, Line)
        ]
        sizes: Counter[float] = Counter()
        for line in lines:
            sizes[_rounded(line.size)] += len(line.text)
        bold = sum(len(line.text) for line in lines if line.bold)
        self._size = sizes.most_common(1)[0][0] if sizes else 0.0
        self._is_bold = bold > sizes.total() / 2
        self._pitch = _pitch(lines)
        self._words = words_of(pages)
        self._found: list[_Found] = []
        self._counts: Counter[tuple[int, Kind]] = Counter()
        self._open: _Open | None = None
        self._table: _LastTable | None = None

    def read(self) -> list[_Found]:
        for number, page in enumerate(self._pages, start=1):
            before: Part | None = None
            for part in page:
                if isinstance(part, Line):
                    self._take(part, number, _distance(before, part))
                    self._table = None
                else:
                    self._close()
                    self._add_table(part, number, goes_on=before is None)
                before = part
        self._close()
        return self._found

    def _take(self, line: Line, page: int, distance: float | None) -> None:
        """Take a line that is so far below the last one, in sizes; None elsewhere."""
        now = self._open
        follows = distance is not None and distance <= _NEXT_LINE * self._pitch
        is_inside = (
            now is not None
            and now.kind is not Kind.HEADING
            and follows
            and not _END.search(now.last.text)
        )
        style = self._style(line, page, is_inside=is_inside)
        is_item = ITEM.match(line.text) and not (
            is_inside and now and now.kind is Kind.PARAGRAPH and line.text[0].isdigit()
        )
        if style:
            if now and now.style == style and follows:
                now.items[-1].append(line)
            else:
                self._begin(Kind.HEADING, line, page, style)
        elif is_item:
            is_near = distance is None or distance <= _NEXT_ITEM * self._pitch
            if now and now.kind is Kind.LIST and is_near:
                now.items.append([line])
            else:
                self._begin(Kind.LIST, line, page)
        elif now and self._goes_on(now, line, distance, follows=follows):
            now.items[-1].append(line)
        else:
            self._begin(Kind.PARAGRAPH, line, page)

    def _style(self, line: Line, page: int, *, is_inside: bool) -> Style | None:
        """Return how a line looks that may be a heading."""
        numbered = _NUMBERED.match(line.text)
        depth = numbered[1].count(".") + 1 if numbered else 1
        bold = line.bold and not self._is_bold
        size = _rounded(line.size)
        if not any(map(str.isalpha, line.text)) or LEADERS.search(line.text):
            return None
        if line.size >= _LARGER * self._size:
            return -size, not bold, depth
        if is_inside or line.size < 0.9 * self._size:
            return None
        if level := self._titles.get(page - 1, {}).get(_plain(line.text)):
            return -size, not bold, max(depth, level)
        is_short = len(line.text.split()) <= 14 and line.text[-1] not in ".,;:!"
        return (-size, not bold, depth) if is_short and (bold or depth > 1) else None

    def _goes_on(
        self, now: _Open, line: Line, distance: float | None, *, follows: bool
    ) -> bool:
        """Tell whether a line is the next one of the open paragraph or item."""
        if now.kind is Kind.HEADING:
            return False
        if distance is None:
            return not _END.search(now.last.text) and (
                line.text[0].islower() or bool(HYPHEN.search(now.last.text))
            )
        begin = now.items[-1][0].x0
        if now.kind is Kind.LIST:
            hangs = line.x0 > begin + _INDENT
            return follows or (hangs and distance <= _NEXT_ITEM * self._pitch)
        is_indented = line.x0 > min(each.x0 for each in now.items[-1]) + _INDENT
        return follows and not (is_indented and _END.search(now.last.text))

    def _begin(
        self, kind: Kind, line: Line, page: int, style: Style | None = None
    ) -> None:
        self._close()
        self._open = _Open(kind, page, [[line]], style)

    def _close(self) -> None:
        now, self._open = self._open, None
        if now is None:
            return
        said = [joined((line.text for line in item), self._words) for item in now.items]
        kind, style = now.kind, now.style
        if kind is Kind.HEADING and (
            len(said[0]) > _MAX_HEADING_LENGTH
            or (len(said[0].split()) > 4 and said[0].endswith((".", ",", ";")))
        ):
            kind, style = Kind.PARAGRAPH, None
        elif kind is Kind.LIST and len(said) == 1:
            kind, said = Kind.PARAGRAPH, [said[0].removeprefix("• ")]
        elif kind is Kind.LIST:
            depths = _depths(item[0].x0 for item in now.items)
            said = [
                "  " * depth + bullet(each)
                for depth, each in zip(depths, said, strict=True)
            ]
        self._found.append(
            _Found(kind, said, now.page, self._place(now.page, kind), style)
        )

    def _place(self, page: int, kind: Kind) -> str:
        self._counts[page, kind] += 1
        return f"page {page}, {kind} {self._counts[page, kind]}"

    def _add_table(self, table: Table, page: int, *, goes_on: bool) -> None:
        rows = [
            [joined(cell.split("\n"), self._words) for cell in row]
            for row in table.rows
        ]
        last = self._table
        if (
            last
            and goes_on
            and last.page == page - 1
            and (rows[0] == last.headings or _same(table.columns, last.columns))
        ):
            del rows[: rows[0] == last.headings]
        else:
            kind = Kind.TABLE if table.is_headed else Kind.LIST
            lines = [f"{table.caption}:"] if table.caption else []
            self._found.append(_Found(kind, lines, page, self._place(page, kind)))
            last = self._table = _LastTable(
                page, rows[0], table.columns, table.is_headed
            )
        found = self._found[-1]
        if last.page != page:
            last.page = page
            found.place = f"pages {found.page} to {page}, {found.kind}"
        found.lines.extend(
            table_row(row) if last.is_headed else bullet(_said(row)) for row in rows
        )


@dataclass(slots=True)
class _LastTable:
    page: int  # on which it was last seen
    headings: Sequence[str]
    columns: Sequence[float]
    is_headed: bool


def _same(some: Sequence[float], others: Sequence[float]) -> bool:
    return len(some) == len(others) and all(
        abs(a - b) < 2 * _INDENT for a, b in zip(some, others, strict=True)
    )


def _said(row: Sequence[str]) -> str:
    """Return a row of a table that names no columns."""
    first, *rest = filter(None, row)
    return f"{first}: {', '.join(rest)}" if rest else first


def _pitch(lines: Sequence[Line]) -> float:
    """Return the usual distance of lines within a paragraph, in sizes of a letter."""
    found = [
        (b.top - a.top) / b.size
        for a, b in pairwise(lines)
        if b.size and a.size == b.size and a.shares_width(b)
        if b.text[0].isalpha() and not b.text[0].isupper()
    ]
    return median([each for each in found if 0.8 < each < 3] or [_PITCH])


def _distance(above: Part | None, line: Line) -> float | None:
    if not isinstance(above, Line) or not (line.size and above.size):
        return None
    distance = (line.top - above.top) / max(line.size, above.size)
    return distance if distance > 0 and above.shares_width(line) else None


def _with_rows_joined(page: Sequence[Part]) -> list[Part]:
    """Return a page with what was written side by side as one line."""
    parts: list[Part] = []
    for part in page:
        last = parts[-1] if parts else None
        if (
            isinstance(last, Line)
            and isinstance(part, Line)
            and part.x0 >= last.x1
            and last.size == part.size
            and last.is_beside(part)
        ):
            parts[-1] = replace(
                last,
                text=f"{last.text} {part.text}",
                x1=part.x1,
                bold=last.bold and part.bold,
            )
        else:
            parts.append(part)
    return parts


def _depths(lefts: Iterable[float]) -> Iterator[int]:
    """Yield how deep each item of a list is, by where it begins."""
    outer: list[float] = []
    for left in lefts:
        if outer and left > outer[-1] + _COLUMN:
            outer = [left]  # the list goes on in the next column
        while outer and left < outer[-1] - _INDENT:
            outer.pop()
        if not outer or left > outer[-1] + _INDENT:
            outer.append(left)
        yield len(outer) - 1


def _rounded(size: float) -> float:
    return round(size * 2) / 2


def _plain(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))
