"""Headings, paragraphs, lists and tables from the lines of a PDF's pages."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .blocks import Block, Kind, as_lead, bullet, table_row
from .pdf_clauses import (
    Number,
    OpenHeadings,
    Style,
    following_lines,
    number_of,
    runs_on,
    succeeds,
)
from .pdf_contents import LEADERS, plain
from .pdf_layout import INDENT, depths, distance_of, pitch_of, rounded, with_rows_joined
from .pdf_parts import Line, Part, Table
from .pdf_words import HYPHEN, joined, words_of
from .plain_text import ITEM

_LARGER = 1.12  # letters of a heading, times the size of the text
_MAX_HEADING_LENGTH = 150  # characters
_MAX_HEADING_WORDS = 14  # of a heading known by its bold type or its number
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2}){0,5})\.?\s+[^\W\d_]")
_END = re.compile(r"[.!?:;][)\"”“']?$")
_NEXT_LINE = 1.25  # maximum distance to a paragraph's next line, times the usual
_NEXT_ITEM = 2.2  # likewise, to a list's next item

Outline = Mapping[int, Sequence[tuple[int, str]]]  # levels and titles by 0-based page


def blocks_of(pages: Sequence[Sequence[Part]], outline: Outline) -> Iterator[Block]:
    """Yield the blocks of a document; titles of the outline are headings too.

    If no line looks like a heading, the titles are put before their pages.
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
    """A block being collected: of a list its items, of others a single one."""

    kind: Kind
    page: int
    items: list[list[Line]]
    style: Style | None = None

    @property
    def last(self) -> Line:
        return self.items[-1][-1]


class _Reader:
    def __init__(self, pages: Sequence[Sequence[Part]], outline: Outline) -> None:
        self._pages = [with_rows_joined(page) for page in pages]
        self._titles = {
            number: {plain(title): level for level, title in titles}
            for number, titles in outline.items()
        }
        lines = [
            part for page in self._pages for part in page if isinstance(part, Line)
        ]
        sizes: Counter[float] = Counter()
        for line in lines:
            sizes[rounded(line.size)] += len(line.text)
        bold = sum(len(line.text) for line in lines if line.bold)
        self._size = sizes.most_common(1)[0][0] if sizes else 0.0
        self._is_bold = bold > sizes.total() / 2
        self._pitch = pitch_of(lines)
        self._behind = following_lines(self._pages)
        self._clause: Number = ()  # of the last clause that began
        self._headings = OpenHeadings()
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
                    self._take(part, number, distance_of(before, part))
                    self._table = None
                else:
                    self._close()
                    self._add_table(part, number, goes_on=before is None)
                before = part
        self._close()
        return self._found

    def _take(self, line: Line, page: int, distance: float | None) -> None:
        """Take a line; `distance` is from the last one, in font sizes, if below it."""
        now = self._open
        follows = distance is not None and distance <= _NEXT_LINE * self._pitch
        is_inside = (
            now is not None
            and now.kind is not Kind.HEADING
            and follows
            and not _END.search(now.last.text)
        )
        number = self._begins_clause(line, is_inside=is_inside)
        style = self._style(line, page, is_inside=is_inside)
        if not style and number and not is_inside and self._is_heading(line, page):
            style = -rounded(line.size), True, len(number)
        is_item = ITEM.match(line.text) and not (
            is_inside and now and now.kind is Kind.PARAGRAPH and line.text[0].isdigit()
        )
        if number:
            self._clause = number
        if style:
            if now and now.style == style and follows:
                now.items[-1].append(line)
            else:
                self._begin(Kind.HEADING, line, page, style)
                self._headings.begin(style, number)
        elif number:
            self._close()
            if ended := self._headings.end_before(number):
                self._found.append(_Found(Kind.HEADING, [""], page, "", ended))
            self._begin(Kind.PARAGRAPH, line, page)
        elif is_item:
            is_near = distance is None or distance <= _NEXT_ITEM * self._pitch
            if now and now.kind is Kind.LIST and is_near:
                now.items.append([line])
            else:
                self._close(leads=is_near and distance is not None)
                self._begin(Kind.LIST, line, page)
        elif now and self._goes_on(now, line, distance, follows=follows):
            now.items[-1].append(line)
        else:
            self._begin(Kind.PARAGRAPH, line, page)

    def _style(self, line: Line, page: int, *, is_inside: bool = False) -> Style | None:
        """Return a heading's style, if its type or the outline shows that it is one."""
        numbered = _NUMBERED.match(line.text)
        depth = numbered[1].count(".") + 1 if numbered else 1
        bold = line.bold and not self._is_bold
        size = rounded(line.size)
        if not any(map(str.isalpha, line.text)) or LEADERS.search(line.text):
            return None
        if line.size >= _LARGER * self._size:
            return -size, not bold, depth
        if is_inside or line.size < 0.9 * self._size:
            return None
        if level := self._titles.get(page - 1, {}).get(plain(line.text)):
            return -size, not bold, max(depth, level)
        is_short = (
            len(line.text.split()) <= _MAX_HEADING_WORDS
            and line.text[-1] not in ".,;:!"
        )
        return (-size, not bold, depth) if is_short and bold else None

    def _begins_clause(self, line: Line, *, is_inside: bool) -> Number:
        """Return the number of the clause that a line begins, or ().

        Not inside a list item; and in the middle of a sentence only if it is the next
        clause and begins at the left edge of the lines above.
        """
        now, number = self._open, number_of(line.text)
        if not (number and now and now.kind is not Kind.HEADING):
            return number
        begin = now.items[0][0].x0
        if now.kind is Kind.LIST and line.x0 > begin + INDENT:
            return ()
        is_next = line.x0 <= begin + INDENT and succeeds(number, self._clause)
        return number if is_next or not is_inside else ()

    def _is_heading(self, line: Line, page: int) -> bool:
        """Return whether a clause's line, in the type of the text, is its heading.

        It must not run on into the next line, nor be followed by the next clause.
        """
        if (
            len(line.text.split()) > _MAX_HEADING_WORDS
            or line.text[-1] in ".,;:!"
            or line.size < 0.9 * self._size
            or LEADERS.search(line.text)
        ):
            return False
        behind = self._behind.get(id(line))
        if not isinstance(behind, Line):
            return behind is not None
        number, below = number_of(line.text), number_of(behind.text)
        if (below and len(below) <= len(number)) or self._style(behind, page):
            return False
        distance = distance_of(line, behind)
        is_near = distance is None or distance <= _NEXT_LINE * self._pitch
        return not (is_near and runs_on(line, behind, self._pages[page - 1]))

    def _goes_on(
        self, now: _Open, line: Line, distance: float | None, *, follows: bool
    ) -> bool:
        """Return whether a line continues the open paragraph or item."""
        if now.kind is Kind.HEADING:
            return False
        if distance is None:
            return _hangs(now, line) or (
                not _END.search(now.last.text)
                and (line.text[0].islower() or bool(HYPHEN.search(now.last.text)))
            )
        begin = now.items[-1][0].x0
        if now.kind is Kind.LIST:
            hangs = line.x0 > begin + INDENT
            return follows or (hangs and distance <= _NEXT_ITEM * self._pitch)
        its = now.items[-1]
        if number_of(its[0].text):
            its = its[1:] or [line]  # after its number, a clause may be indented
        is_indented = line.x0 > min(each.x0 for each in its) + INDENT
        return follows and not (is_indented and _END.search(now.last.text))

    def _begin(
        self, kind: Kind, line: Line, page: int, style: Style | None = None
    ) -> None:
        self._close()
        self._open = _Open(kind, page, [[line]], style)

    def _close(self, *, leads: bool = False) -> None:
        """Close the open block; with `leads`, an open sentence introduces a list."""
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
        elif kind is Kind.PARAGRAPH and leads and not _END.search(said[0]):
            said = [as_lead(said[0].rstrip(",-\u2013\u2014 "))]
        elif kind is Kind.LIST and len(said) == 1 and not self._is_led():
            kind, said = Kind.PARAGRAPH, [said[0].removeprefix("• ")]
        elif kind is Kind.LIST:
            lefts = (item[0].x0 for item in now.items)
            said = [
                "  " * depth + bullet(each)
                for depth, each in zip(depths(lefts), said, strict=True)
            ]
        self._found.append(
            _Found(kind, said, now.page, self._place(now.page, kind), style)
        )

    def _is_led(self) -> bool:
        last = self._found[-1] if self._found else None
        return (
            last is not None
            and last.kind is Kind.PARAGRAPH
            and last.lines[-1].endswith(":")
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
    page: int  # where it was last seen
    headings: Sequence[str]
    columns: Sequence[float]
    is_headed: bool


def _same(some: Sequence[float], others: Sequence[float]) -> bool:
    return len(some) == len(others) and all(
        abs(a - b) < 2 * INDENT for a, b in zip(some, others, strict=True)
    )


def _said(row: Sequence[str]) -> str:
    """Return a row of a table without column headings as one line."""
    first, *rest = filter(None, row)
    return f"{first}: {', '.join(rest)}" if rest else first


def _hangs(now: _Open, line: Line) -> bool:
    """Return whether a line is indented past its clause's number, like the last one."""
    first, *others = now.items[-1]
    return (
        now.kind is Kind.PARAGRAPH
        and bool(number_of(first.text) and others)
        and now.last.x0 > first.x0 + INDENT
        and abs(line.x0 - now.last.x0) < INDENT
    )
