"""PDF: the text of its pages, without recurring lines such as headers."""

import logging
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from io import BufferedReader
from itertools import islice
from typing import IO, cast

import pdfplumber
from pdfminer.pdfdocument import PDFNoOutlines, PDFPasswordIncorrect
from pdfminer.pdftypes import resolve1
from pdfminer.psexceptions import PSException
from pdfplumber.pdf import PDF
from pdfplumber.utils.exceptions import MalformedPDFException, PdfminerException

from .blocks import Kind
from .documents import as_document
from .formats import ImportFileError, Limits, SourceDocument
from .pdf_columns import arranged
from .pdf_furniture import without_furniture
from .pdf_page import read_page
from .pdf_parts import Part
from .pdf_text import blocks_of

_BROKEN = (PSException, PdfminerException, MalformedPDFException, ValueError, KeyError,
           TypeError, AttributeError, IndexError, RecursionError, AssertionError,
           ArithmeticError, NotImplementedError, OSError)  # fmt: skip
_FILE = re.compile(r"\.\w{2,5}$|^Microsoft Word - ")  # titles that are file names
_MAX_BOOKMARKS = 10_000

# A file can make these libraries log any number of lines.
logging.getLogger("pdfminer").setLevel(logging.CRITICAL)
logging.getLogger("pdfplumber").setLevel(logging.CRITICAL)


def read_pdf(stream: IO[bytes], language: str, limits: Limits) -> SourceDocument:
    """Read a PDF's text; images of text are not read."""
    try:
        # Any binary file will do, whatever the library declares.
        with pdfplumber.open(cast("BufferedReader", stream)) as opened:
            pages, furniture = without_furniture(list(_pages(opened, limits)))
            blocks = list(blocks_of(list(map(arranged, pages)), _outline(opened)))
            title = opened.metadata.get("Title")
    # The library passes on the errors of every layer that reads a damaged file.
    except _BROKEN as error:
        if isinstance(error, ImportFileError):
            raise
        if isinstance(cause := error.__context__, MemoryError):
            raise cause from None
        if isinstance(cause, PDFPasswordIncorrect):
            raise ImportFileError(
                "The PDF is locked by a password; unlock it first."
            ) from error
        raise ImportFileError(f"The PDF cannot be read: {error}.") from error
    if not any(pages):
        raise ImportFileError(
            "The PDF contains no text, perhaps only images of it; run OCR on it first."
        )
    if all(block.kind is Kind.HEADING for block in blocks):
        blocks = [replace(block, kind=Kind.PARAGRAPH) for block in blocks]
    return as_document(
        [*furniture, *blocks],
        language=language,
        title=title if isinstance(title, str) and not _FILE.search(title) else "",
    )


def _pages(opened: PDF, limits: Limits) -> Iterator[list[Part]]:
    size = 0
    for page in opened.pages:
        # Counted before lines are made of the characters: each is a dictionary.
        size += sum(len(char["text"]) for char in page.chars)
        if size > limits.unpacked_bytes:
            raise ImportFileError(
                f"The PDF holds more than {limits.unpacked_bytes:,} characters; split "
                "it, or raise NESCIO_IMPORT_MAX_UNPACKED_MIB."
            )
        yield read_page(page)
        page.close()


def _outline(opened: PDF) -> dict[int, list[tuple[int, str]]]:
    """Return the level and title of the bookmarks by 0-based page."""
    numbers = {page.page_obj.pageid: at for at, page in enumerate(opened.pages)}
    found: dict[int, list[tuple[int, str]]] = defaultdict(list)
    try:
        for level, title, target, action, _ in islice(
            opened.doc.get_outlines(), _MAX_BOOKMARKS
        ):
            place = resolve1(target or (resolve1(action) or {}).get("D"))
            if isinstance(place, str | bytes):
                place = resolve1(opened.doc.get_dest(place))
            if isinstance(place, dict):
                place = resolve1(place.get("D"))
            if not isinstance(place, list | tuple) or not place or not title.strip():
                continue
            page = numbers.get(getattr(place[0], "objid", None))
            if page is not None:
                found[page].append((level, " ".join(title.split())))
    except (PDFNoOutlines, *_BROKEN):
        pass  # bookmarks are optional; those found so far are used
    return found
