"""What a text is made of, and how it becomes facts."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from kb.text.facts import split_into_facts

from .formats import Fact, SourceDocument
from .furniture import is_of_its_page, trimmed

MAX_WHOLE = 4_000
"""Characters of a list or table that is kept whole; a longer one is cut between items."""

_HEADING_LIMIT = 300
_MAX_DEPTH = 8
_MARKS = "*-•◦▪·"
# A paragraph that begins so says nothing without the one before: "Exception: ...".
_EXCEPTS = re.compile(
    r"(?:exceptions?|except|notes?|please note|however|otherwise|ausnahmen?|hinweis|achtung)"
    r"\b(?=[:,]| (?:for|that|if|when|für|bei)\b)",
    re.IGNORECASE,
)
# What programs leave in a text and no entry may hold.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\ufeff\ud800-\udfff]")


class Kind(StrEnum):
    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST = "list"
    TABLE = "table"
    CODE = "code"
    FURNITURE = "furniture"  # lines that tell about the document itself


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a text that is read by itself, with its place, such as "page 3"."""

    kind: Kind
    lines: tuple[str, ...]  # of a paragraph, a list's items, a table's rows
    place: str
    level: int = 1  # of a heading, from 1

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def as_document(
    blocks: Iterable[Block], *, language: str, title: str = ""
) -> SourceDocument:
    """Make a document of blocks: headings its tree, the rest its facts.

    A list or table takes the sentence along that leads to it by a colon. What tells about
    the document itself is left out.
    """
    path: list[tuple[int, str]] = []
    paths: list[tuple[str, ...]] = []
    facts: list[Fact] = []
    left_out: list[Fact] = []
    first = ""
    for block in _joined(_with_exceptions(_marked(blocks, language))):
        if block.kind is Kind.HEADING:
            heading = _clean(" ".join(block.text.split()))[:_HEADING_LIMIT].strip()
            if not heading:
                continue
            first = first or heading
            while path and path[-1][0] >= block.level:
                path.pop()
            path.append((block.level, heading))
            del path[_MAX_DEPTH:]
            paths.append(tuple(name for _, name in path))
        else:
            headings = tuple(name for _, name in path)
            is_furniture = block.kind is Kind.FURNITURE
            texts = _texts(block, language)
            (left_out if is_furniture else facts).extend(
                Fact(text, block.place, headings=headings)
                for text in map(_clean, texts)
                if any(map(str.isalnum, text))
            )
    return SourceDocument(
        title=_clean(" ".join(title.split())[:_HEADING_LIMIT]) or first,
        source="",
        headings=tuple(dict.fromkeys(paths)),
        facts=tuple(facts),
        left_out=tuple(left_out),
    )


def bullet(item: str) -> str:
    return f"- {' '.join(item.split()).lstrip(_MARKS).strip()}"


def table_row(cells: Iterable[str]) -> str:
    return " | ".join(" ".join(cell.split()) for cell in cells)


def _clean(text: str) -> str:
    return unicodedata.normalize("NFC", _UNPRINTABLE.sub("", text)).strip()


def _marked(blocks: Iterable[Block], language: str) -> list[Block]:
    """Return the blocks with what tells about the document in blocks of their own."""
    prose = (Kind.HEADING, Kind.PARAGRAPH)
    found = [
        replace(block, kind=Kind.FURNITURE)
        if block.kind in prose and all(map(is_of_its_page, block.lines))
        else block
        for block in blocks
    ]
    found = list(_trimmed(found, language, from_end=False))
    return list(_trimmed(found[::-1], language, from_end=True))[::-1]


def _trimmed(
    blocks: Iterable[Block], language: str, *, from_end: bool
) -> Iterator[Block]:
    """Trim paragraphs from where the blocks begin, up to one of which something stays."""
    is_over = False
    for block in blocks:
        if is_over or block.kind is not Kind.PARAGRAPH:
            yield block
            is_over |= block.kind in (Kind.LIST, Kind.TABLE, Kind.CODE)
            continue
        rest, taken = trimmed(block.lines, language, from_end=from_end)
        if taken:
            yield replace(block, kind=Kind.FURNITURE, lines=tuple(taken))
        if rest:
            yield replace(block, lines=rest)
            is_over = True


def _with_exceptions(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the blocks, each paragraph with those behind it that take something of it back."""
    last: Block | None = None
    for block in blocks:
        if (
            last is not None
            and block.kind is Kind.PARAGRAPH
            and _EXCEPTS.match(block.text)
        ):
            last = replace(last, lines=(*last.lines, *block.lines))
            continue
        if last is not None:
            yield last
            last = None
        if block.kind is Kind.PARAGRAPH:
            last = block
        else:
            yield block
    if last is not None:
        yield last


def _joined(blocks: Iterable[Block]) -> Iterator[Block]:
    lead: Block | None = None
    for block in blocks:
        whole = block.kind in (Kind.LIST, Kind.TABLE)
        if lead is not None and whole:
            *before, last = lead.text.rsplit(". ", 1)
            if before:
                yield Block(lead.kind, (f"{before[0]}.",), lead.place)
            yield Block(block.kind, (last, *block.lines), lead.place)
            lead = None
            continue
        if lead is not None:
            yield lead
            lead = None
        if block.kind is Kind.PARAGRAPH and block.text.rstrip().endswith(":"):
            lead = block
        else:
            yield block
    if lead is not None:
        yield lead


def _texts(block: Block, language: str) -> Iterator[str]:
    if block.kind is Kind.FURNITURE:
        yield from _cut(block.lines, joint="\n", head="")
    elif block.kind is Kind.PARAGRAPH:
        for text in split_into_facts(block.text, language):
            yield from _cut(text.split(" "), joint=" ", head="")
    else:
        head = block.lines[0] if len(block.lines) > 1 else ""
        is_lead = head.rstrip().endswith(":")
        if block.kind is Kind.LIST and not is_lead:
            head = ""
        elif block.kind is Kind.TABLE and is_lead:  # the columns' headings are below it
            head = "\n".join(block.lines[:2])
        yield from _cut(block.lines, joint="\n", head=head)


def _cut(parts: Iterable[str], *, joint: str, head: str) -> Iterator[str]:
    """Yield `parts` joined, in pieces of at most `MAX_WHOLE`, each under `head`."""
    head = head[: MAX_WHOLE // 2]
    piece: list[str] = []
    size = 0
    for part in _bounded(parts):
        if piece and size + len(part) > MAX_WHOLE:
            yield joint.join(piece)
            piece = [head] if head else []
            size = len(head)
        piece.append(part)
        size += len(part) + len(joint)
    if piece:
        yield joint.join(piece)


def _bounded(parts: Iterable[str]) -> Iterator[str]:
    for part in parts:
        for start in range(0, max(len(part), 1), MAX_WHOLE):
            yield part[start : start + MAX_WHOLE]
