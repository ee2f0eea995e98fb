"""PDF: the text of each page, under the headings of its outline."""

from collections import defaultdict
from collections.abc import Iterator
from typing import IO, Any

from pypdf import PdfReader
from pypdf.errors import PyPdfError
from pypdf.generic import Destination

from .blocks import Block, Kind, as_document
from .formats import ImportFileError, Limits, SourceDocument
from .plain_text import text_blocks

_BROKEN = (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError,
           RecursionError, AssertionError, OverflowError, OSError)  # fmt: skip


def read_pdf(stream: IO[bytes], language: str, limits: Limits) -> SourceDocument:
    """Read a PDF's text; pictures of text are not read."""
    try:
        reader = PdfReader(stream)
        if reader.is_encrypted and not reader.decrypt(""):
            raise ImportFileError("The PDF is locked by a password; unlock it first.")
        headings = _headings(reader)
        blocks = list(_blocks(reader, headings, limits))
        title = (reader.metadata.title if reader.metadata else "") or ""
    # The library lets every layer of a damaged file speak for itself.
    except _BROKEN as error:
        if isinstance(error, ImportFileError):
            raise
        raise ImportFileError(f"The PDF cannot be read: {error}.") from error
    if not any(block.kind is not Kind.HEADING for block in blocks):
        raise ImportFileError(
            "The PDF holds no text, perhaps only pictures of it; read it by OCR first."
        )
    return as_document(blocks, language=language, title=title)


def _blocks(
    reader: PdfReader, headings: dict[int, list[tuple[int, str]]], limits: Limits
) -> Iterator[Block]:
    size = 0
    for number, page in enumerate(reader.pages):
        place = f"page {number + 1}"
        for level, heading in headings.get(number, ()):
            yield Block(Kind.HEADING, (heading,), place, level)
        text = page.extract_text()
        size += len(text)
        if size > limits.unpacked_bytes:
            raise ImportFileError(
                f"The PDF holds more than {limits.unpacked_bytes:,} characters; split "
                "it, or raise NESCIO_IMPORT_MAX_UNPACKED_MIB."
            )
        named = {heading for _, heading in headings.get(number, ())}
        for block in text_blocks(iter(text.splitlines()), page=place):
            if headings and block.kind is Kind.HEADING:
                # The outline says what is a heading; this one is a line of text.
                if block.text not in named:
                    yield Block(Kind.PARAGRAPH, block.lines, block.place)
            else:
                yield block


def _headings(reader: PdfReader) -> dict[int, list[tuple[int, str]]]:
    """Return level and heading of the outline by 0-based page."""
    found: dict[int, list[tuple[int, str]]] = defaultdict(list)

    def walk(nodes: list[Any], level: int) -> None:
        for node in nodes:
            if isinstance(node, list):
                walk(node, level + 1)
            elif isinstance(node, Destination):
                page = reader.get_destination_page_number(node)
                if page is not None and node.title:
                    found[page].append((level, " ".join(str(node.title).split())))

    walk(reader.outline, 1)
    return found
