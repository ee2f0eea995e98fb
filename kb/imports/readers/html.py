"""HTML: what a reader of the page sees; scripts, styles and navigation are left out."""

import io
from collections.abc import Iterator
from typing import IO

from lxml import etree, html

from .blocks import Block, Kind, as_document, bullet, table_row
from .formats import ImportFileError, SourceDocument
from .plain_text import open_text

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_SKIPPED = frozenset(
    {
        "script", "style", "template", "noscript", "nav", "head", "svg", "math", "form",
        "button", "select", "iframe", "object", "title", "footer",
    }
)  # fmt: skip
_BREAKING = frozenset(
    {
        "p", "div", "section", "article", "main", "body", "html", "blockquote", "header",
        "aside", "figure", "figcaption", "address", "dl", "dt", "dd", "details",
        "summary", "hr", "center", "fieldset", "td", "th", "tr", "li",
    }
)  # fmt: skip


def read_html(stream: IO[bytes], language: str) -> SourceDocument:
    """Read a page; nothing that it refers to is fetched and no entity expanded."""
    with open_text(stream) as opened:
        content = opened.read().encode()
    parser = html.HTMLParser(
        encoding="utf-8",
        no_network=True,
        remove_comments=True,
        remove_pis=True,
        huge_tree=False,
    )
    try:
        root = html.parse(io.BytesIO(content), parser).getroot()
    except (etree.LxmlError, AssertionError) as error:
        raise ImportFileError(f"The page cannot be read: {error}.") from error
    if root is None:
        raise ImportFileError("The page is empty.")
    title = root.findtext(".//title") or ""
    return as_document(_blocks(root), language=language, title=title)


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


def _blocks(root: etree._Element) -> Iterator[Block]:
    line = _Line(root.sourceline or 1)
    skipping: etree._Element | None = None
    for event, element in etree.iterwalk(root, events=("start", "end")):
        tag = element.tag if isinstance(element.tag, str) else ""
        if skipping is not None:
            if event == "end" and element is skipping:
                skipping = None
                line.leave(element)
            continue
        whole = _whole(element, tag) if event == "start" else None
        if tag in _BREAKING or tag in _SKIPPED or whole:
            yield from line.taken()
        if whole:
            yield whole
        if whole or tag in _SKIPPED:
            skipping = element
        elif event == "start":
            line.enter(element, tag)
        else:
            line.leave(element)
    yield from line.taken()


def _whole(element: etree._Element, tag: str) -> Block | None:
    place = f"line {element.sourceline or 1}"
    if tag in _HEADINGS:
        return Block(Kind.HEADING, (_text(element),), place, _HEADINGS[tag])
    if tag in ("ul", "ol"):
        return Block(Kind.LIST, tuple(_items(element, 0)), place)
    if tag == "table" and len(rows := tuple(_rows(element))) > 1 and _is_data(element):
        return Block(Kind.TABLE, rows, place)
    if tag == "pre":
        lines = tuple(_raw(element).strip("\n").splitlines())
        return Block(Kind.CODE, lines, place)
    return None


def _is_data(table: etree._Element) -> bool:
    """Tell a table of data from one that only lays out a page."""
    return next(table.iter("h1", "h2", "h3", "ul", "ol"), None) is None and (
        sum(1 for _ in table.iter("table")) == 1
    )


def _items(element: etree._Element, depth: int) -> Iterator[str]:
    for item in element:
        if item.tag != "li":
            continue
        nested = [child for child in item if child.tag in ("ul", "ol")]
        text = " ".join(_raw(item, without=("ul", "ol")).split())
        if text:
            yield "  " * depth + bullet(text)
        for child in nested:
            yield from _items(child, depth + 1)


def _rows(table: etree._Element) -> Iterator[str]:
    for row in table.iter("tr"):
        cells = [_text(cell) for cell in row if cell.tag in ("td", "th")]
        if any(cells):
            yield table_row(cells)


def _text(element: etree._Element) -> str:
    return " ".join(_raw(element).split())


def _raw(element: etree._Element, without: tuple[str, ...] = ()) -> str:
    """Return all words below an element, but those of some tags and of what is skipped."""
    words: list[str] = []
    skipping: etree._Element | None = None
    for event, each in etree.iterwalk(element, events=("start", "end")):
        tag = each.tag if isinstance(each.tag, str) else ""
        if event == "end":
            if skipping is each:
                skipping = None
            if skipping is None and each is not element:
                words.append(" " if tag in _BREAKING else "")
                words.append(each.tail or "")
        elif skipping is None:
            if tag in _SKIPPED or (tag in without and each is not element):
                skipping = each
            else:
                words.append(" " if tag == "br" or tag in _BREAKING else "")
                words.append(each.text or "")
    return "".join(words)
