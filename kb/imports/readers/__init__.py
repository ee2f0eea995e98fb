"""Readers that turn files of knowledge into facts: plain values, no database.

`kb.imports.services` plans and applies what `read` yields.
"""

from collections.abc import Iterator
from typing import IO

from .formats import (
    PACKED,
    BadRow,
    Fact,
    FileItem,
    Format,
    GuessedEncoding,
    ImportFileError,
    Limits,
    SourceDocument,
    UnreadColumns,
    Withdrawn,
    check_paragraphs,
    detect_format,
)
from .html import read_html
from .markdown import read_markdown
from .objects import read_json, read_json_lines
from .plain_text import guessed_encoding, read_text
from .rows import read_csv, read_tsv

__all__ = [
    "BadRow", "Fact", "FileItem", "GuessedEncoding", "ImportFileError", "Limits", "SourceDocument",
    "UnreadColumns", "Withdrawn", "detect_format", "read",
]  # fmt: skip


def read(
    stream: IO[bytes], file_format: str, *, language: str, limits: Limits
) -> Iterator[FileItem]:
    """Yield the facts of a seekable file, in the same order each time.

    Tables and JSON Lines are read row by row; JSON, and formats that hold one document,
    are read as a whole. `language` is "xx" for a language without a code here. Use
    `child.read_in_child` for files from others: it limits time and memory.
    """
    if file_format not in PACKED and (encoding := guessed_encoding(stream, language)):
        yield GuessedEncoding(encoding)
    for item in _items(stream, file_format, language, limits):
        if isinstance(item, SourceDocument):
            check_paragraphs(len(item.facts), limits)
        yield item


def _items(
    stream: IO[bytes], file_format: str, language: str, limits: Limits
) -> Iterator[FileItem]:
    if file_format == Format.CSV:
        yield from read_csv(stream, language)
    elif file_format == Format.TSV:
        yield from read_tsv(stream, language)
    elif file_format == Format.JSON:
        yield from read_json(stream, language)
    elif file_format == Format.JSON_LINES:
        yield from read_json_lines(stream, language)
    elif file_format == Format.MARKDOWN:
        yield read_markdown(stream, language)
    elif file_format == Format.HTML:
        yield read_html(stream, language)
    elif file_format == Format.PDF:
        from .pdf import read_pdf  # noqa: PLC0415  # loads its library only here

        yield read_pdf(stream, language, limits)
    elif file_format == Format.DOCX:
        from .docx import read_docx  # noqa: PLC0415  # likewise

        yield read_docx(stream, language, limits)
    elif file_format == Format.XLSX:
        from .excel import read_excel  # noqa: PLC0415  # likewise

        yield from read_excel(stream, limits, language)
    else:
        yield read_text(stream, language)
