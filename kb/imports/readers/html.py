"""HTML as a reader of the page sees it, without scripts, styles and navigation.

What opens below a question (`details`, an accordion) is one fact, as is each term of a
definition list with its definition. Parts beside the text (cookie banner, breadcrumbs,
related pages, feedback form) make no facts.
"""

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import IO

from lxml import etree, html

from .blocks import Block, Cell, Kind, bullet, table_rows
from .documents import as_document
from .formats import ImportFileError, SourceDocument
from .html_page import BREAKING, HEADINGS, Page, raw_text, text_of
from .plain_text import open_text
from .questions import paired

_MAX_COLUMNS = 100


def read_html(stream: IO[bytes], language: str) -> SourceDocument:
    """Read a page, without fetching what it refers to or expanding entities."""
    with open_text(stream, language) as opened:
        title, blocks = html_blocks(opened.read())
    return as_document(blocks, language=language, title=title)


def html_blocks(content: str) -> tuple[str, list[Block]]:
    """Return the title and the blocks of a page, or of a part of one.

    Raises:
        ImportFileError: It cannot be read, or is empty.
    """
    parser = html.HTMLParser(
        encoding="utf-8",
        no_network=True,
        remove_comments=True,
        remove_pis=True,
        huge_tree=False,
    )
    try:
        root = html.parse(io.BytesIO(content.encode()), parser).getroot()
    except (etree.LxmlError, AssertionError) as error:
        raise ImportFileError(f"The page cannot be read: {error}.") from error
    if root is None:
        raise ImportFileError("The page is empty.")
    title = root.findtext(".//title") or ""
    try:
        _move_contacts(root)
        page = Page.of(root)
        for each in [*root.iter("*")]:
            if page.is_hidden(each) and each.getparent() is not None:
                each.drop_tree()
        return title, [*_blocks(root, page)]
    except RecursionError as error:
        raise ImportFileError("The page's elements are nested too deeply.") from error


def _move_contacts(root: etree._Element) -> None:
    """Move boxes with a phone number or email address beside the text to its end."""
    main = next(root.iter("main"), None)
    for aside in [*root.iter("aside"), *root.iterfind(".//*[@role='complementary']")]:
        boxes: dict[etree._Element, None] = {}
        for link in aside.iter("a"):
            if (link.get("href") or "").startswith(("tel:", "mailto:")):
                above = link.iterancestors("section", "div", "address", "aside")
                box = next(above, aside)
                boxes[link.getparent() if box is aside else box] = None
        for box in boxes:
            if box is aside or aside not in box.iterancestors():
                continue
            if main is not None and main not in aside.iterancestors():
                main.append(box)
            else:
                aside.addnext(box)


class _Line:
    def __init__(self, number: int) -> None:
        self._words: list[str] = []
        self._number = number

    def enter(self, element: etree._Element, tag: str) -> None:
        if not "".join(self._words).strip():
            self._number = element.sourceline or self._number
        self._words += [" " if tag == "br" else "", element.text or ""]

    def leave(self, element: etree._Element) -> None:
        self._words.append(element.tail or "")

    def taken(self) -> Iterator[Block]:
        text = " ".join("".join(self._words).split())
        self._words.clear()
        if text:
            yield Block(Kind.PARAGRAPH, (text,), f"line {self._number}")


def _blocks(root: etree._Element, page: Page) -> Iterator[Block]:
    """Yield the blocks below an element, ignoring its own kind."""
    line = _Line(root.sourceline or 1)
    skipping: etree._Element | None = None
    for event, element in etree.iterwalk(root, events=("start", "end")):
        tag = element.tag if isinstance(element.tag, str) else ""
        if skipping is not None:
            if event == "end" and element is skipping:
                skipping = None
                line.leave(element)
            continue
        if element is root:
            if event == "start":
                line.enter(element, tag)
            continue
        whole = _whole(element, tag, page) if event == "start" else None
        if tag in BREAKING or whole is not None:
            yield from line.taken()
        if whole is not None:
            yield from whole
            skipping = element
        elif event == "start":
            line.enter(element, tag)
        else:
            line.leave(element)
    yield from line.taken()


def _whole(element: etree._Element, tag: str, page: Page) -> Iterable[Block] | None:
    """Return the blocks of an element read as a whole or left out; None for others."""
    place = f"line {element.sourceline or 1}"
    if page.is_skipped(element, tag):
        return ()
    if page.is_beside(element, tag):
        return _beside(element, page)
    if (question := page.opened.get(element)) is not None:
        return paired(question, _blocks(element, page), place, is_asked=True)
    if tag == "dl":
        return _definitions(element, page)
    if tag in HEADINGS:
        return [Block(Kind.HEADING, (text_of(element),), place, HEADINGS[tag])]
    if tag in ("ul", "ol") and not (page.opened.keys() & {*element.iter()}):
        return [Block(Kind.LIST, tuple(_items(element, 0)), place)]
    if tag == "table" and _is_data(element):
        rows = table_rows(_grid(element), is_heading=lambda cell: cell.tag == "th")
        caption = [
            Block(Kind.CAPTION, (text,), place)
            for each in element.iter("caption")
            if (text := text_of(each))
        ]
        return [*caption, Block(Kind.TABLE, rows, place)] if len(rows) > 1 else None
    if tag == "pre":
        lines = tuple(raw_text(element).strip("\n").splitlines())
        return [Block(Kind.CODE, lines, place)]
    return None


def _beside(element: etree._Element, page: Page) -> Iterator[Block]:
    for block in _blocks(element, page):
        if block.kind is not Kind.HEADING:
            yield replace(block, kind=Kind.FURNITURE)


def _definitions(element: etree._Element, page: Page) -> Iterator[Block]:
    """Yield each term, or terms that share a definition, with the definition."""
    terms: list[str] = []
    said: list[Block] = []
    place = ""
    for each in element.iter("dt", "dd"):
        if next(each.iterancestors("dl"), None) is not element:
            continue
        if each.tag == "dt":
            if said:
                yield from paired(", ".join(terms), said, place)
                terms, said = [], []
            place = place if terms else f"line {each.sourceline or 1}"
            terms += filter(None, [text_of(each)])
        else:
            said += _blocks(each, page)
    yield from paired(", ".join(terms), said, place)


def _is_data(table: etree._Element) -> bool:
    """Return whether a table holds data rather than laying out a page."""
    return next(table.iter("h1", "h2", "h3", "ul", "ol"), None) is None and (
        sum(1 for _ in table.iter("table")) == 1
    )


def _items(element: etree._Element, depth: int) -> Iterator[str]:
    start = element.get("start", "1").strip()
    number = int(start) if re.fullmatch(r"[0-9]{1,3}", start) else 1
    for item in element:
        if item.tag != "li":
            continue
        nested = [child for child in item if child.tag in ("ul", "ol")]
        text = " ".join(raw_text(item, without=("ul", "ol")).split())
        if text:
            mark = number if element.tag == "ol" else None
            yield "  " * depth + bullet(text, mark)
            number += 1
        for child in nested:
            yield from _items(child, depth + 1)


def _grid(table: etree._Element) -> Iterator[list[Cell]]:
    """Yield the rows, with each cell in all positions that it spans."""
    below: dict[int, tuple[int, Cell]] = {}  # by column: cells spanning down from above
    for row in table.iter("tr"):
        cells: list[Cell] = []
        left = [cell for cell in row if cell.tag in ("td", "th")]
        while len(cells) < _MAX_COLUMNS and (left or len(cells) in below):
            at = len(cells)
            if at in below:
                rows, cell = below.pop(at)
                cells.append(cell)
                if rows > 1:
                    below[at] = rows - 1, cell
                continue
            element = left.pop(0)
            cell = (element, text_of(element))
            rows = _span(element, "rowspan")
            for column in range(at, at + _span(element, "colspan")):
                cells.append(cell)
                if rows > 1:
                    below[column] = rows - 1, cell
        yield cells


def _span(cell: etree._Element, name: str) -> int:
    said = cell.get(name, "1")
    return min(max(int(said), 1), _MAX_COLUMNS) if said.isdecimal() else 1
