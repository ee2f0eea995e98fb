"""Tables of contents of a PDF: lines that refer to pages, with dots or without."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from .pdf_parts import Line, Part

LEADERS = re.compile(r"(?:[.\u00b7]\s?|\u2026){4,}")
_ENTRY = re.compile(
    rf"(?P<title>.{{1,200}}?)\s*(?P<dots>{LEADERS.pattern})?\s*"
    r"(?P<page>\d{1,4}|(?<=\s)[ivxlIVXL]{1,6})"
)
_ENDS = "0123456789ivxlIVXL"  # of a page number
_HEADING = re.compile(
    r"(?:table of )?contents|in this (?:booklet|document|guide|leaflet)|"
    r"inhalt(?:sverzeichnis|s\u00fcbersicht)?",
    re.IGNORECASE,
)
_MAX_BETWEEN = 2  # rows without a page between two entries, as in long titles
_MIN_ENTRIES = 2
_MORE_PAGES = (
    10  # page numbers may exceed the page count by this: a cover, Roman numerals
)


@dataclass(frozen=True, slots=True)
class Row:
    """Lines side by side on a page, as one text."""

    text: str
    page: int
    parts: tuple[Line, ...]
    entry: re.Match[str] | None

    @property
    def has_leaders(self) -> bool:
        return bool(self.entry and self.entry["dots"])


def contents_of(pages: Sequence[Sequence[Part]]) -> list[list[Row]]:
    """Return the rows of each table of contents, and single entries elsewhere.

    A table begins with its heading, and its page numbers never decrease; either they
    are pages of this document, or most titles are lines of it. Any other line with dots
    may be a price: it is an entry only if its title is a line elsewhere.
    """
    rows = [row for number, page in enumerate(pages) for row in _rows(page, number)]
    said = {plain(row.text) for row in rows if not row.has_leaders} - {""}
    tables: list[list[Row]] = []
    at = 0
    while at < len(rows):
        table = (
            _table(rows[at:], said, len(pages))
            if _HEADING.fullmatch(rows[at].text.strip(" :"))
            else []
        )
        if table:
            tables.append(table)
        at += len(table) or 1
    inside = {id(row) for table in tables for row in table}
    single = [
        [row]
        for row in rows
        if id(row) not in inside
        and (entry := row.entry)
        and entry["dots"]
        and plain(entry["title"]) in said
    ]
    return tables + single


def plain(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _rows(page: Iterable[Part], number: int) -> Iterator[Row]:
    rows: list[list[Line]] = []
    for line in page:
        if not isinstance(line, Line) or not line.size:
            continue
        # In writing order, since lines of another column are beside these too.
        if rows and rows[-1][-1].is_beside(line):
            rows[-1].append(line)
        else:
            rows.append([line])
    for row in rows:
        row.sort(key=lambda line: line.x0)
        text = " ".join(line.text for line in row)
        entry = _ENTRY.fullmatch(text) if text[-1] in _ENDS else None
        yield Row(text, number, tuple(row), entry)


def _table(rows: Sequence[Row], said: Collection[str], pages: int) -> list[Row]:
    """Return the rows of the table of contents that the first row heads; [] if none."""
    end, last = 0, 0
    entries: list[re.Match[str]] = []
    for at, row in enumerate(rows[1:], start=1):
        entry = row.entry
        is_known = entry and (entry["dots"] or plain(entry["title"]) in said)
        page = int(entry["page"]) if entry and entry["page"].isdigit() else 0
        if entry and is_known and (not page or page >= last):
            entries.append(entry)
            end, last = at, page or last
        elif at - end > _MAX_BETWEEN:
            break
    known = sum(plain(entry["title"]) in said for entry in entries)
    if len(entries) < _MIN_ENTRIES or (
        last > pages + _MORE_PAGES and known < len(entries) / 2
    ):
        return []
    return list(rows[: end + 1])
