"""File formats, limits, and the facts that readers yield."""

import codecs
import zipfile
from dataclasses import dataclass
from pathlib import PurePath
from typing import IO

from django.db import models

from kb.exceptions import InvalidKnowledgeError
from kb.text.cleaning import digest_of, digest_of_key


class ImportFileError(InvalidKnowledgeError):
    """A file that cannot be read further; the facts before that may be imported."""

    code = "import_file"

    def __init__(self, message: str) -> None:
        super().__init__("file", message)


@dataclass(frozen=True, slots=True)
class Limits:
    file_bytes: int
    unpacked_bytes: int
    paragraphs: int = 100_000  # of one document
    memory_bytes: int = 1024**3  # of the reading process
    seconds: int = 600  # of reading, without waits for the consumer


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact, which becomes one entry."""

    text: str
    place: str  # its place in the source, such as "line 7"
    question: str = ""
    id: str = ""  # its id in the source; empty if it has none
    headings: tuple[str, ...] = ()  # from the outermost
    wordings: tuple[str, ...] = ()  # other wordings of the question
    about: str = ""  # identifies it in its table, or among facts with its question

    @property
    def digest(self) -> str:
        return digest_of("fact", self.question, self.text, *self.wordings)

    @property
    def key(self) -> str:
        """Digest of its id, question, subject or whole text: 64 hex digits."""
        if self.id:
            return digest_of_key(self.id)
        if self.question:
            return digest_of("question", self.question, *filter(None, [self.about]))
        if self.about:
            return digest_of("row", self.about)
        return digest_of("fact", "", self.text)


@dataclass(frozen=True, slots=True)
class SourceDocument:
    title: str
    source: str  # identifies the document; empty for a file's only one
    headings: tuple[tuple[str, ...], ...]  # all paths in order, even without facts
    facts: tuple[Fact, ...]
    place: str = ""
    left_out: tuple[Fact, ...] = ()  # lines about the document itself


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that could not be read, with the reason; the import goes on without it."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class UnreadColumns:
    """Columns, or names in JSON objects, that are not read: their content is lost.

    Attributes:
        names: Printable, 60 characters each at most.
        understood: Columns read under another name: "'patients ask' as question".
    """

    names: tuple[str, ...]
    understood: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A row that its source does not publish: a draft, or one that is withdrawn."""

    place: str


@dataclass(frozen=True, slots=True)
class GuessedEncoding:
    """The encoding guessed for a text that declares none and is not UTF-8."""

    name: str


FileItem = Fact | SourceDocument | BadRow | UnreadColumns | Withdrawn | GuessedEncoding
"""A fact, a document, a row that cannot be read, or a note on the file."""


class Format(models.TextChoices):
    CSV = "csv", "CSV"
    TSV = "tsv", "TSV"
    JSON = "json", "JSON"
    JSON_LINES = "jsonl", "JSON Lines"
    MARKDOWN = "markdown", "Markdown"
    HTML = "html", "HTML"
    TEXT = "text", "plain text"
    PDF = "pdf", "PDF"
    DOCX = "docx", "DOCX"
    XLSX = "xlsx", "Excel"


HEAD_BYTES = 4096
_MAX_MEMBERS = 10_000
_BY_SUFFIX = {
    ".csv": Format.CSV,
    ".tsv": Format.TSV,
    ".tab": Format.TSV,
    ".json": Format.JSON,
    ".jsonl": Format.JSON_LINES,
    ".ndjson": Format.JSON_LINES,
    ".md": Format.MARKDOWN,
    ".markdown": Format.MARKDOWN,
    ".html": Format.HTML,
    ".htm": Format.HTML,
    ".xhtml": Format.HTML,
    ".txt": Format.TEXT,
    ".text": Format.TEXT,
    ".pdf": Format.PDF,
    ".docx": Format.DOCX,
    ".xlsx": Format.XLSX,
}
NAMED = f"{', '.join(Format.labels[:-1])} or {Format.labels[-1]}"
SUFFIXES = tuple(_BY_SUFFIX)  # supported endings of file names

_REMEDIES = {
    **dict.fromkeys((".doc", ".odt", ".rtf", ".pages"), "save it as .docx"),
    **dict.fromkeys((".xls", ".ods", ".numbers"), "save it as .xlsx"),
    **dict.fromkeys((".ppt", ".pptx", ".odp", ".key", ".epub"), "save it as .pdf"),
    **dict.fromkeys((".mht", ".mhtml", ".webarchive"), "save the page as .html"),
    ".zip": "unpack it and choose the files in it",
}
_RTF = b"{\\rtf"
_OLE = b"\xd0\xcf\x11\xe0"  # Office before 2007, and files with a password
_ARCHIVE = b"PK\x03\x04"
_ARCHIVES = (Format.DOCX, Format.XLSX)
PACKED = {Format.PDF, *_ARCHIVES}
_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Characters that no text may hold: control characters except tab, line ends, form feed
# and the escape of old terminals.
_CONTROL = bytes(set(range(32)) - {9, 10, 12, 13, 27}) + b"\x7f"
_CONTROLS = {*_CONTROL.decode()}


def detect_format(name: str, stream: IO[bytes], limits: Limits) -> Format:
    """Return the format of a seekable file, whose first bytes must agree with its name.

    Called when a file is uploaded, so it reads no further: the content of an archive is
    checked when it is read.

    Raises:
        ImportFileError: It is empty or too large, its format is not supported, or its
            first bytes contradict its name.
    """
    _check_size(stream, limits)
    head = stream.read(HEAD_BYTES)
    stream.seek(0)
    suffix = PurePath(name).suffix.lower()
    named = _BY_SUFFIX.get(suffix)
    if named is None:
        remedy = _REMEDIES.get(suffix, f"take one of {', '.join(SUFFIXES)}")
        raise ImportFileError(
            f"{name!r} ends in {suffix or 'nothing'}, which is not read; {remedy}."
        )
    if head.startswith((_RTF, _OLE)):
        what = "RTF" if head.startswith(_RTF) else "of an old Office, or has a password"
        raise ImportFileError(
            f"{name!r} is {what}; save it as .docx or .xlsx, without a password."
        )
    if named not in _ARCHIVES and head.startswith(_ARCHIVE):
        raise ImportFileError(
            f"{name!r} is not {named.label} but an archive, such as an Excel "
            "workbook (.xlsx) or a Word document (.docx); give it the right ending."
        )
    found = _packed_format(head, named)
    if found is not None or named in PACKED:
        if found is not named:
            raise ImportFileError(
                f"The content of {name!r} is not {named.label}"
                f"{f' but {found.label}' if found else ''}; give it the right ending."
            )
    elif not utf_16_of(head) and head.translate(None, _CONTROL) != head:
        raise ImportFileError(
            f"{name!r} holds bytes that are not text; if it is text, save it as UTF-8."
        )
    return named


def check_archive(stream: IO[bytes], limits: Limits, member: str, what: str) -> None:
    """Raise for an archive that lacks a member or unpacks to too much; unpacks nothing.

    No more is ever read of it than the sizes that it declares.
    """
    try:
        with zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise ImportFileError(f"The file is damaged: {error}.") from error
    finally:
        stream.seek(0)
    total = sum(each.file_size for each in members)
    if total > limits.unpacked_bytes or len(members) > _MAX_MEMBERS:
        raise ImportFileError(
            f"The file unpacks to {total:,} bytes in {len(members):,} parts; the "
            f"limit is {limits.unpacked_bytes:,} in {_MAX_MEMBERS:,}; split it, or raise "
            "NESCIO_IMPORT_MAX_UNPACKED_MIB."
        )
    if member not in {each.filename for each in members}:
        raise ImportFileError(
            f"The file is an archive but does not contain a valid {what}."
        )


def check_paragraphs(count: int, limits: Limits) -> None:
    if count > limits.paragraphs:
        raise ImportFileError(
            f"The document has {count:,} paragraphs and may have {limits.paragraphs:,}; "
            "split it, or raise NESCIO_IMPORT_MAX_PARAGRAPHS."
        )


def _check_size(stream: IO[bytes], limits: Limits) -> None:
    size = stream.seek(0, 2)
    stream.seek(0)
    if size == 0:
        raise ImportFileError("The file is empty.")
    if size > limits.file_bytes:
        raise ImportFileError(
            f"The file has {size:,} bytes and may have {limits.file_bytes:,}; split it, "
            "or raise NESCIO_IMPORT_MAX_MIB."
        )


def utf_16_of(head: bytes) -> str:
    """Return the UTF-16 codec of a text by its first bytes, or "" for none.

    Recognised by the byte order mark, or if at least half of the characters have a zero
    byte on the same side, as Latin letters have, no other byte is zero, and there are
    no control characters.
    """
    if head.startswith(_UTF_16_MARKS):
        return "utf-16"
    head = head[: len(head[:HEAD_BYTES]) // 2 * 2]
    for name, zeros, others in (
        ("utf-16-le", head[1::2], head[::2]),
        ("utf-16-be", head[::2], head[1::2]),
    ):
        if 2 * zeros.count(0) >= len(zeros) > 0 and 0 not in others:
            text = codecs.getincrementaldecoder(name)("replace").decode(head)
            return "" if _CONTROLS & {*text} or "\ufffd" in text else name
    return ""


def _packed_format(head: bytes, named: Format) -> Format | None:
    if head.startswith(_ARCHIVE):  # its members tell which archive it is
        return named
    return Format.PDF if b"%PDF-" in head[:1024] else None
