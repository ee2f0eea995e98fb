"""HTML as a reader of the page sees it, without scripts, styles and navigation.

What opens below a question (`details`, an accordion) is one fact, as is each term of a
definition list with its definition. Parts beside the text (cookie banner, breadcrumbs,
related pages, feedback form) make no facts.
"""

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import IO, Self

from lxml import etree, html

from .blocks import Block, Cell, Kind, bullet, table_rows
from .documents import as_document
from .formats import ImportFileError, SourceDocument
from .plain_text import open_text
from .questions import MAX_QUESTION, asks_nothing, paired

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

_SKIPPED_ROLES = frozenset({"navigation", "search", "contentinfo"})
_BESIDE_ROLES = frozenset({"dialog", "alertdialog", "complementary"})
# Classes, ids and labels count only if no element or role does; whole words, since
# "feedback" alone may be the topic of a page.
_BESIDE = re.compile(
    r"(?:cookies?|consent|gdpr)-?(?:banner|consent|notice|bar|popup|modal|dialog|message|"
    r"overlay|wall|layer|settings)|(?:onetrust|cybotcookiebot|usercentrics)[\w-]*|"
    r"cc-window|breadcrumbs?(?:-?(?:nav|list|trail|navigation|wrapper|container))?|"
    r"related(?:-?(?:pages|links|articles|posts|topics|content|reading|questions))?|"
    r"(?:page-|article-)?feedback-?(?:widget|box|form|bar|prompt|section)|"
    r"was-this-(?:page-|article-)?helpful|(?:social-?)?share-?(?:buttons|links|bar)|"
    r"newsletter(?:-?(?:form|box|signup|sign-up))?|skip-?(?:link|to-content)|"
    r"(?:site|page|main|global)?[-_]?footer",
    re.IGNORECASE,
)
# Beside the text only if they are mostly links, which a canteen's menu is not.
_OF_LINKS = re.compile(
    r"(?:top|main|site|side|left|right|primary|secondary|global|header|footer|sub)?[-_]?"
    r"(?:nav|navbar|navigation|menu|menubar|side-?bar|links)",
    re.IGNORECASE,
)
_LABELS = re.compile(
    r"cookies?|breadcrumbs?|related(?: \w+)?|feedback|share", re.IGNORECASE
)
_IS_A_NOTE = re.compile(
    r"\b(?:note|tip|hint|warning|caution|info|important|callout|admonition)\b",
    re.IGNORECASE,
)
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
        page = _Page.of(root)
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


@dataclass(frozen=True, slots=True)
class _Page:
    """What is collected about a page's elements before they are read in order.

    Attributes:
        opened: Elements that open below a question, with the question.
        asking: Elements that show such a question.
        controlled: Ids of elements that may be hidden until a reader opens them.
        around: Ancestors of the main content; empty if the page marks none.
    """

    opened: dict[etree._Element, str] = field(default_factory=dict)
    asking: set[etree._Element] = field(default_factory=set)
    controlled: set[str] = field(default_factory=set)
    around: set[etree._Element] = field(default_factory=set)

    @classmethod
    def of(cls, root: etree._Element) -> Self:
        page = cls()
        for details in root.iter("details"):
            if (summary := details.find("summary")) is not None:
                page._opens(details, summary)
        by_id = {each.get("id"): each for each in root.iter() if each.get("id")}
        for control in [*root.iter("*")]:
            names = (control.get("aria-controls") or "").split()
            page.controlled.update(names)
            opened = by_id.get(names[0]) if names else None
            if opened is not None and control.get("aria-expanded") is not None:
                page._is_opened(opened, control)
        main = [*root.iter("main"), *root.iterfind(".//*[@role='main']")]
        # A page may mark a part as its main content that is not.
        if sum(len(_text(each)) for each in main) * 2 > len(_text(root)):
            page.around.update(above for each in main for above in each.iterancestors())
        return page

    def _is_opened(self, opened: etree._Element, control: etree._Element) -> None:
        if opened.tag in _SKIPPED or opened in control.iterancestors():
            return
        is_button = control.tag == "button"
        if is_button:
            control.tag = "span"  # its words belong to the text
        heading = next(control.iterancestors(*_HEADINGS), control)
        if opened.tag != "dd" and next(control.iterancestors("dt"), None) is None:
            self._opens(opened, heading)
            if is_button and heading is control and control not in self.asking:
                control.tag = "button"

    def _opens(self, opened: etree._Element, asking: etree._Element) -> None:
        question = _text(asking)
        if question and len(question) <= MAX_QUESTION and not asks_nothing(question):
            self.opened[opened] = question
            self.asking.add(asking)

    def is_skipped(self, element: etree._Element, tag: str) -> bool:
        return (
            tag in _SKIPPED
            or element in self.asking
            or element.get("role") in _SKIPPED_ROLES
        )

    def is_hidden(self, element: etree._Element) -> bool:
        """Return whether readers never see an element, whatever they open."""
        is_hidden = element.get("hidden", "until-found") != "until-found" or (
            element.get("aria-hidden") == "true"
        )
        if not is_hidden or element in self.opened:
            return False
        is_panel = element.get("role") == "tabpanel"
        return not is_panel and element.get("id") not in self.controlled

    def is_beside(self, element: etree._Element, tag: str) -> bool:
        """Return whether an element is beside the page's own text."""
        names = f"{element.get('class', '')} {element.get('id', '')}".split()
        above = element.getparent()
        if tag in ("html", "body") or element in self.around or above is None:
            return False
        if tag == "main" or element.get("role") == "main":
            return False
        if tag == "aside" or element.get("role") == "complementary":
            return not _IS_A_NOTE.search(" ".join([*names, element.get("role", "")]))
        # The page's own heading may stand above its main content.
        if above in self.around and next(element.iter("h1"), None) is None:
            return True
        if tag == "header" and next(element.iter(*_HEADINGS), None) is None:
            return (
                next(element.iterancestors("main", "article", "section"), None) is None
            )
        return (
            tag == "dialog"
            or element.get("role") in _BESIDE_ROLES
            or any(map(_BESIDE.fullmatch, names))
            or (any(map(_OF_LINKS.fullmatch, names)) and _is_mostly_links(element))
            or _LABELS.fullmatch(element.get("aria-label", "")) is not None
        )


def _is_mostly_links(element: etree._Element) -> bool:
    linked = sum(len(_text(link)) for link in element.iter("a"))
    return linked * 2 > len(_text(element))


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


def _blocks(root: etree._Element, page: _Page) -> Iterator[Block]:
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
        if tag in _BREAKING or whole is not None:
            yield from line.taken()
        if whole is not None:
            yield from whole
            skipping = element
        elif event == "start":
            line.enter(element, tag)
        else:
            line.leave(element)
    yield from line.taken()


def _whole(element: etree._Element, tag: str, page: _Page) -> Iterable[Block] | None:
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
    if tag in _HEADINGS:
        return [Block(Kind.HEADING, (_text(element),), place, _HEADINGS[tag])]
    if tag in ("ul", "ol") and not (page.opened.keys() & {*element.iter()}):
        return [Block(Kind.LIST, tuple(_items(element, 0)), place)]
    if tag == "table" and _is_data(element):
        rows = table_rows(_grid(element), is_heading=lambda cell: cell.tag == "th")
        caption = [
            Block(Kind.CAPTION, (text,), place)
            for each in element.iter("caption")
            if (text := _text(each))
        ]
        return [*caption, Block(Kind.TABLE, rows, place)] if len(rows) > 1 else None
    if tag == "pre":
        lines = tuple(_raw(element).strip("\n").splitlines())
        return [Block(Kind.CODE, lines, place)]
    return None


def _beside(element: etree._Element, page: _Page) -> Iterator[Block]:
    for block in _blocks(element, page):
        if block.kind is not Kind.HEADING:
            yield replace(block, kind=Kind.FURNITURE)


def _definitions(element: etree._Element, page: _Page) -> Iterator[Block]:
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
            terms += filter(None, [_text(each)])
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
        text = " ".join(_raw(item, without=("ul", "ol")).split())
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
            cell = (element, _text(element))
            rows = _span(element, "rowspan")
            for column in range(at, at + _span(element, "colspan")):
                cells.append(cell)
                if rows > 1:
                    below[column] = rows - 1, cell
        yield cells


def _span(cell: etree._Element, name: str) -> int:
    said = cell.get(name, "1")
    return min(max(int(said), 1), _MAX_COLUMNS) if said.isdecimal() else 1


def _text(element: etree._Element) -> str:
    return " ".join(_raw(element).split())


def _raw(element: etree._Element, without: tuple[str, ...] = ()) -> str:
    """Return the text below an element, except skipped tags and those in `without`."""
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
