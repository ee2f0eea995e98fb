"""DOCX: paragraphs, headings by their style, lists and tables, in the document's order."""

import re
from collections.abc import Iterator
from typing import IO
from zipfile import BadZipFile

import docx
from docx.document import Document
from docx.opc.exceptions import OpcError
from docx.table import Table
from docx.text.paragraph import Paragraph
from lxml.etree import LxmlError

from .blocks import Block, Kind, as_document, bullet, table_row
from .formats import (
    ImportFileError,
    Limits,
    SourceDocument,
    check_archive,
    check_paragraphs,
)

_HEADING = re.compile(r"(?:heading|überschrift) (\d)", re.IGNORECASE)
_BROKEN = (OpcError, LxmlError, BadZipFile, KeyError, ValueError, AttributeError,
           NotImplementedError, OSError, EOFError, RecursionError)  # fmt: skip


def read_docx(stream: IO[bytes], language: str, limits: Limits) -> SourceDocument:
    """Read a Word document; pictures, comments and headers are left out."""
    check_archive(stream, limits)
    try:
        opened = docx.Document(stream)
        # Counted before any of them is looked at: the library makes an object of each.
        check_paragraphs(len(opened.element.body), limits)
        blocks = list(_blocks(opened))
        title = opened.core_properties.title or ""
    # The library lets every layer of a damaged file speak for itself.
    except _BROKEN as error:
        if isinstance(error, ImportFileError):
            raise
        raise ImportFileError(f"The DOCX cannot be read: {error}.") from error
    return as_document(blocks, language=language, title=title)


def _blocks(opened: Document) -> Iterator[Block]:
    items: list[str] = []
    begin = ""
    number = 0
    for part in opened.iter_inner_content():
        number += 1
        place = f"paragraph {number}"
        item = isinstance(part, Paragraph) and _is_item(part)
        if items and not item:
            yield Block(Kind.LIST, tuple(items), begin)
            items = []
        if isinstance(part, Table):
            rows = tuple(
                table_row(cells) for row in part.rows if (cells := _cells(row))
            )
            yield Block(Kind.TABLE, rows, place)
        elif not part.text.strip():
            continue
        elif item:
            begin = begin if items else place
            items.append(bullet(part.text))
        elif level := _level(part):
            yield Block(Kind.HEADING, (part.text,), place, level)
        else:
            yield Block(Kind.PARAGRAPH, (part.text,), place)
    if items:
        yield Block(Kind.LIST, tuple(items), begin)


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


def _cells(row: object) -> list[str]:
    """Return the texts of a row; a cell over several columns counts once."""
    cells: list[str] = []
    last = None
    for cell in row.cells:  # type: ignore[attr-defined]  # a row of the library's
        if cell._tc is not last:
            cells.append(cell.text)
        last = cell._tc
    return cells if any(cell.strip() for cell in cells) else []
