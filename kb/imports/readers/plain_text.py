"""Plain text: decoding, then paragraphs, lists by marks, headings by appearance."""

import codecs
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO

from charset_normalizer import from_bytes

from .blocks import Block, Kind, bullet
from .documents import as_document
from .formats import ImportFileError, SourceDocument, utf_16_of

_SAMPLE_BYTES = 256 * 1024
# Code pages of DOS, old Macintoshes and HP's terminals, for which the few letters of a
# short table saved by a spreadsheet are easily mistaken.
_UNLIKELY = [
    "hp_roman8",
    *(f"cp{page}" for page in (437, 737, 775, *range(850, 870), 1125)),
    *(
        f"mac_{name}"
        for name in ("cyrillic", "greek", "iceland", "latin2", "roman", "turkish")
    ),
]
# The Windows code page with a language's letters. In a short text the same bytes are
# letters of several code pages, and only the language decides.
_PAGES_OF_WINDOWS = {
    "cp1250": ("cs", "hr", "hu", "pl", "ro", "sk", "sl", "sq"),
    "cp1252": (
        "ca", "da", "de", "en", "es", "eu", "fi", "fr", "ga", "gl", "is", "it", "nb",
        "nl", "nn", "no", "pt", "sv",
    ),
    "cp1254": ("az", "tr"),
    "cp1257": ("et", "lt", "lv"),
}  # fmt: skip
_PAGE_OF = {name: page for page, names in _PAGES_OF_WINDOWS.items() for name in names}
_DECLARED = re.compile(
    rb"<(?:meta|\?xml)\b[^>]*?(?:charset|encoding)\s*=\s*[\"']?([\w-]+)"
)
_HEAD_BYTES = 4096  # in which a page declares its encoding


@contextmanager
def open_text(
    stream: IO[bytes], language: str, *, newline: str | None = None
) -> Iterator[IO[str]]:
    """Open a file as text, decoded as it is read; the file itself stays open.

    Raises:
        ImportFileError: While reading, if a byte is invalid in the encoding.
    """
    encoding, _ = detect_encoding(stream, language)
    stream.seek(0)
    text = io.TextIOWrapper(stream, encoding=encoding, newline=newline)
    try:
        yield text
    except UnicodeDecodeError as error:
        raise ImportFileError(
            f"The file is not valid {encoding}: {error.reason} after {error.start} bytes of "
            "the part that was read. Save it as UTF-8."
        ) from error
    finally:
        text.detach()


def detect_encoding(stream: IO[bytes], language: str) -> tuple[str, bool]:
    """Return the encoding's name, and whether it was guessed from the text's letters.

    By its byte order mark, by trying UTF-8, by what a page declares, or by detection
    and the language.
    """
    stream.seek(0)
    sample = stream.read(_SAMPLE_BYTES)
    if sample.startswith(codecs.BOM_UTF8):
        return "utf-8-sig", False
    if utf_16 := utf_16_of(sample):
        return utf_16, False
    if _decodes(sample, "utf-8"):
        return "utf-8", False
    declared = _declared(sample)
    if declared:
        return declared, False
    best = from_bytes(sample, cp_exclusion=_UNLIKELY).best()
    if best is None:
        raise ImportFileError("The file's encoding is unknown; save it as UTF-8.")
    own = _PAGE_OF.get(language)
    if own and best.encoding in _PAGES_OF_WINDOWS and _decodes(sample, own):
        return own, True
    return best.encoding, True


def _decodes(sample: bytes, encoding: str) -> bool:
    try:  # a character may be cut off at the sample's end
        codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return False
    return True


def _declared(sample: bytes) -> str:
    """Return the encoding that a page declares, if its bytes are valid in it."""
    head = sample[:_HEAD_BYTES].lower()
    found = _DECLARED.search(head) if head.lstrip().startswith(b"<") else None
    try:
        name = codecs.lookup(found[1].decode()).name if found else ""
        "".encode(name or "ascii")  # raises if it is not a text encoding
    except LookupError:
        return ""
    # As browsers do: cp1252 is the same but has more characters.
    name = "cp1252" if name == "iso8859-1" else name
    return name if name and _decodes(sample, name) else ""


def guessed_encoding(stream: IO[bytes], language: str) -> str:
    """Return the encoding if it was guessed from the text's letters, otherwise ""."""
    encoding, is_guessed = detect_encoding(stream, language)
    stream.seek(0)
    return encoding if is_guessed else ""


ITEM = re.compile(
    r"\s*(?:[*\-•◦▪·]|\d{1,3}[.)]|\(?[a-z][.)]|\((?:\d{1,2}|[ivx]{1,5})\))\s+\S"
)
_CLAUSE = re.compile(r"\s*(\d{1,2}(?:\.\d{1,2})+)\.?\s+[^\W\d_a-z]")
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2})*)\.?\s+\S")
_UNDERLINE = re.compile(r"(=+|-{3,})\s*$")
_MAX_HEADING = 100


def read_text(stream: IO[bytes], language: str) -> SourceDocument:
    with open_text(stream, language) as text:
        return as_document(text_blocks(text), language=language)


def text_blocks(lines: Iterator[str] | IO[str]) -> Iterator[Block]:
    """Yield the blocks of a text.

    A heading is a short line that was broken on purpose: the next line's first word
    would have fitted, by the measure of its paragraph's longest line. So is a clause's
    number with a few words, unless the next clause follows right below.
    """
    paragraphs = [*_paragraphs(lines)]
    for at, (number, paragraph) in enumerate(paragraphs):
        following = paragraphs[at + 1][1] if at + 1 < len(paragraphs) else [""]
        ends = len(paragraph) == 1 and 0 < _depth(following) <= _depth(paragraph)
        yield from _blocks(paragraph, f"line {number}", may_head=not ends)


def _depth(paragraph: Sequence[str]) -> int:
    """Return how many numbers begin a clause: 2 for "1.3 Access"; 0 for other text."""
    clause = _CLAUSE.match(paragraph[0])
    return clause[1].count(".") + 1 if clause else 0


def _paragraphs(lines: Iterator[str] | IO[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield paragraphs, split at blank lines and clauses, each with its first line."""
    paragraph: list[str] = []
    begin = 1
    for number, line in enumerate(lines, start=1):
        stripped = line.replace("\f", " ").rstrip()
        if paragraph and (not stripped or _begins_clause(stripped, paragraph)):
            yield begin, paragraph
            paragraph = []
        if stripped:
            if not paragraph:
                begin = number
            paragraph.append(stripped)
    if paragraph:
        yield begin, paragraph


def _begins_clause(line: str, above: Sequence[str]) -> bool:
    """Return whether a line begins a clause, not a sentence's rest with a number."""
    is_over = above[-1][-1] in ".:;!?)" or ITEM.match(above[-1]) is not None
    heads = len(above) == 1 and _depth(above) > 0
    return _CLAUSE.match(line) is not None and (is_over or heads)


def _blocks(
    lines: Sequence[str], place: str, *, may_head: bool = True
) -> Iterator[Block]:
    lines = list(lines)
    if len(lines) > 1 and _UNDERLINE.match(lines[1]):
        yield Block(Kind.HEADING, (lines[0],), place, 1 if lines[1][0] == "=" else 2)
        lines = lines[2:]
    elif may_head and _is_heading(lines):
        numbered = _NUMBERED.match(lines[0])
        # A question belongs to the chapter above it and does not end it.
        below = 2 if lines[0].rstrip().endswith("?") else 1
        level = numbered[1].count(".") + 1 if numbered else below
        yield Block(Kind.HEADING, (lines[0].strip(),), place, level)
        lines = lines[1:]
    plain: list[str] = []
    items: list[str] = []
    for line in lines:
        if ITEM.match(line):
            items.append(line)
        elif items:
            items[-1] += f" {line.strip()}"
        else:
            plain.append(line)
    if len(items) == 1 and not plain:
        plain, items = items, []
    if plain:
        yield Block(Kind.PARAGRAPH, tuple(plain), place)
    if items:
        yield Block(Kind.LIST, tuple(map(bullet, items)), place)


def _is_heading(lines: Sequence[str]) -> bool:
    line = lines[0].strip()
    if len(line) > _MAX_HEADING or line[-1] in ".,;:!" or len(line.split()) > 14:
        return False
    if len(lines) == 1:
        return line[0].isupper() or bool(_NUMBERED.match(line))
    following = lines[1].strip()
    fits = len(line) + 1 + len(following.split()[0]) < max(map(len, lines))
    return fits and not ITEM.match(following) and following[0].isupper()
