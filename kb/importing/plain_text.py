"""Plain text: paragraphs between empty lines, lists by their marks, headings by their look."""

import re
from collections.abc import Iterator, Sequence
from typing import IO

from .blocks import Block, Kind, as_document, bullet
from .encoding import open_text
from .values import SourceDocument

_ITEM = re.compile(r"\s*(?:[*\-•◦▪·]|\d{1,3}[.)]|[a-z][.)])\s+\S")
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2})*)\.?\s+\S")
_UNDERLINE = re.compile(r"(=+|-{3,})\s*$")
_LONGEST_HEADING = 100


def read_text(stream: IO[bytes], language: str) -> SourceDocument:
    """Read a plain text.

    Raises:
        ImportFileError: It is in no encoding that is known.
    """
    with open_text(stream) as text:
        return as_document(text_blocks(text), language=language)


def text_blocks(lines: Iterator[str] | IO[str], *, page: str = "") -> Iterator[Block]:
    """Yield the blocks of a text.

    A heading is a short line that was broken on purpose: the next line's first word
    would have fitted into it, by the measure of its paragraph's longest line.

    Args:
        page: Prefixed to each place.
    """
    for number, paragraph in _paragraphs(lines):
        place = f"{page}, line {number}" if page else f"line {number}"
        yield from _blocks(paragraph, place)


def _paragraphs(lines: Iterator[str] | IO[str]) -> Iterator[tuple[int, list[str]]]:
    paragraph: list[str] = []
    begin = 1
    for number, line in enumerate(lines, start=1):
        stripped = line.replace("\f", " ").rstrip()
        if stripped:
            if not paragraph:
                begin = number
            paragraph.append(stripped)
        elif paragraph:
            yield begin, paragraph
            paragraph = []
    if paragraph:
        yield begin, paragraph


def _blocks(lines: Sequence[str], place: str) -> Iterator[Block]:
    lines = list(lines)
    if len(lines) > 1 and _UNDERLINE.match(lines[1]):
        yield Block(Kind.HEADING, (lines[0],), place, 1 if lines[1][0] == "=" else 2)
        lines = lines[2:]
    elif _is_heading(lines):
        numbered = _NUMBERED.match(lines[0])
        level = numbered[1].count(".") + 1 if numbered else 1
        yield Block(Kind.HEADING, (lines[0].strip(),), place, level)
        lines = lines[1:]
    plain: list[str] = []
    items: list[str] = []
    for line in lines:
        if _ITEM.match(line):
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
    if len(line) > _LONGEST_HEADING or line[-1] in ".,;:!" or len(line.split()) > 14:
        return False
    if len(lines) == 1:
        return line[0].isupper() or bool(_NUMBERED.match(line))
    following = lines[1].strip()
    fits = len(line) + 1 + len(following.split()[0]) < max(map(len, lines))
    return fits and not _ITEM.match(following) and following[0].isupper()
