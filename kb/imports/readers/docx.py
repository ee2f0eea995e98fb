"""DOCX: paragraphs, headings (by style), lists and tables, in document order."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import IO
from zipfile import BadZipFile

import docx
from docx.document import Document
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.exceptions import OpcError
from docx.oxml.ns import qn
from docx.oxml.parser import OxmlElement, parse_xml
from docx.table import Table
from docx.text.paragraph import Paragraph
from lxml.etree import LxmlError, _Element

from .blocks import Block, Kind, as_lead, bullet, table_rows
from .documents import as_document
from .formats import (
    ImportFileError,
    Limits,
    SourceDocument,
    check_archive,
    check_paragraphs,
)

_HEADING = re.compile(r"(?:heading|überschrift) (\d)", re.IGNORECASE)
_HEADING_NUMBER = re.compile(r"(?:\d+\.)*\d+\.?\s+")
_WRAPPERS = ("w:ins", "w:moveTo", "w:sdt", "w:smartTag", "w:customXml")
_DEEPEST = 8  # Word itself has nine list levels
_BROKEN = (OpcError, LxmlError, BadZipFile, KeyError, ValueError, AttributeError,
           NotImplementedError, OSError, EOFError, RecursionError)  # fmt: skip


def read_docx(stream: IO[bytes], language: str, limits: Limits) -> SourceDocument:
    """Read a Word document; pictures, comments and headers are left out."""
    check_archive(stream, limits, "word/document.xml", "DOCX")
    try:
        opened = docx.Document(stream)
        _accept_changes(opened.element.body)
        _put_notes_in(opened)
        # Counted first: the library creates an object for each.
        check_paragraphs(len(opened.element.body), limits)
        blocks = list(_blocks(opened))
        title = opened.core_properties.title or ""
    # The library passes on the errors of every layer that reads a damaged file.
    except _BROKEN as error:
        if isinstance(error, ImportFileError):
            raise
        raise ImportFileError(f"The DOCX cannot be read: {error}.") from error
    return as_document(blocks, language=language, title=title)


def _accept_changes(body: _Element) -> None:
    """Accept all tracked changes and unwrap content controls.

    The library reads neither insertions nor the content of controls.
    """
    for each in [*body.iter(qn("w:del"), qn("w:moveFrom"))]:
        _remove(each)
    for each in [*body.iter(*map(qn, _WRAPPERS))]:
        inner = each.find(qn("w:sdtContent")) if each.tag == qn("w:sdt") else each
        for child in [] if inner is None else [*inner]:
            each.addprevious(child)
        _remove(each)


def _put_notes_in(opened: Document) -> None:
    """Append each footnote and endnote to the paragraph that refers to it.

    A note on a heading becomes the first paragraph below it.
    """
    for kind, relation in (
        ("footnote", RELATIONSHIP_TYPE.FOOTNOTES),
        ("endnote", RELATIONSHIP_TYPE.ENDNOTES),
    ):
        try:
            notes = parse_xml(opened.part.part_related_by(relation).blob)
        except KeyError:  # there are none
            continue
        said = {
            each.get(qn("w:id")): " ".join(
                "".join(text.text or "" for text in each.iter(qn("w:t"))).split()
            )
            for each in notes.iterchildren(qn(f"w:{kind}"))
        }
        for mark in [*opened.element.body.iter(qn(f"w:{kind}Reference"))]:
            above = next(mark.iterancestors(qn("w:p")), None)
            if above is None or not (note := said.get(mark.get(qn("w:id")))):
                continue
            if _level(Paragraph(above, opened._body)):
                above.addnext(below := OxmlElement("w:p"))
                above = below
            Paragraph(above, opened._body).add_run(f" {note}")


def _remove(element: _Element) -> None:
    if (parent := element.getparent()) is not None:
        parent.remove(element)


def _blocks(opened: Document) -> Iterator[Block]:
    """Yield the document's blocks; a list right below a heading is introduced by it."""
    numbering = _Numbering(opened)
    items: list[str] = []
    begin = heading = ""
    for number, part in enumerate(opened.iter_inner_content(), start=1):
        place = f"paragraph {number}"
        item = isinstance(part, Paragraph) and _is_item(part)
        before, heading = heading, ""
        if items and not item:
            yield Block(Kind.LIST, tuple(items), begin)
            items = []
        if isinstance(part, Table):
            rows = table_rows(
                [(cell._tc, cell.text) for cell in row.cells] for row in part.rows
            )
            yield Block(Kind.TABLE, rows, place)
        elif not part.text.strip():
            heading = before
        elif item:
            if not items:
                begin = place
                items = [as_lead(before)] if before else []
            items.append(numbering.item(part))
        elif level := _level(part):
            yield Block(Kind.HEADING, (part.text,), place, level)
            heading = _HEADING_NUMBER.sub("", part.text, count=1)
        else:
            kind = Kind.CAPTION if _style(part) == "Caption" else Kind.PARAGRAPH
            yield Block(kind, (part.text,), place)
    if items:
        yield Block(Kind.LIST, tuple(items), begin)


class _Numbering:
    """The document's list formats, and the count of each list so far."""

    def __init__(self, opened: Document) -> None:
        self._formats: dict[tuple[str, int], tuple[bool, int]] = {}
        self._counted: Counter[tuple[str, int]] = Counter()
        try:
            lists = opened.part.numbering_part.element
        except (KeyError, NotImplementedError):  # there are none
            return
        abstract = {
            each.get(qn("w:abstractNumId")): each
            for each in lists.iterchildren(qn("w:abstractNum"))
        }
        for each in lists.iterchildren(qn("w:num")):
            name = each.get(qn("w:numId"), "")
            shape = abstract.get(_value(each, "w:abstractNumId"))
            for level in () if shape is None else shape.iterchildren(qn("w:lvl")):
                depth = level.get(qn("w:ilvl"), "0")
                start = _value(level, "w:start")
                self._formats[name, int(depth)] = (
                    _value(level, "w:numFmt") == "decimal",
                    int(start) if start.isdecimal() else 1,
                )
            for level in each.iterchildren(qn("w:lvlOverride")):
                start = _value(level, "w:startOverride")
                at = name, int(level.get(qn("w:ilvl"), "0"))
                if at in self._formats and start.isdecimal():
                    self._formats[at] = self._formats[at][0], int(start)

    def item(self, paragraph: Paragraph) -> str:
        """Return an item indented by its level, with its number if the list has any."""
        name, level = _list_of(paragraph)
        is_numbered, start = self._formats.get((name, level), (False, 1))
        style = _style(paragraph)
        depth = level or (int(style[-1]) - 1 if style[-1:] in set("23456789") else 0)
        self._counted[name, level] += 1
        for deeper in range(level + 1, _DEEPEST + 1):  # deeper levels restart
            self._counted.pop((name, deeper), None)
        number = start + self._counted[name, level] - 1
        text = bullet(paragraph.text, number if is_numbered else None)
        return "  " * min(depth, _DEEPEST) + text


def _value(element: _Element, child: str) -> str:
    found = element.find(qn(child))
    return found.get(qn("w:val"), "") if found is not None else ""


def _list_of(paragraph: Paragraph) -> tuple[str, int]:
    """Return the id and level of a paragraph's list, from itself or its style."""
    styles = [paragraph._p.pPr]
    style = paragraph.style
    while style is not None and len(styles) < _DEEPEST:
        styles.append(style.element.find(qn("w:pPr")))
        style = style.base_style
    for properties in styles:
        found = properties.find(qn("w:numPr")) if properties is not None else None
        if found is not None:
            level = _value(found, "w:ilvl")
            return _value(found, "w:numId"), int(level) if level.isdecimal() else 0
    return "", 0


def _style(paragraph: Paragraph) -> str:
    style = paragraph.style
    return (style.name or "") if style is not None else ""


def _level(paragraph: Paragraph) -> int:
    name = _style(paragraph)
    if name == "Title":
        return 1
    found = _HEADING.match(name)
    return int(found[1]) if found else 0


def _is_item(paragraph: Paragraph) -> bool:
    if not paragraph.text.strip() or _level(paragraph):
        return False
    properties = paragraph._p.pPr
    numbered = properties is not None and properties.numPr is not None
    return numbered or _style(paragraph).startswith("List ")
