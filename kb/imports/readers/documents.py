"""Turns blocks into a document: its headings, and the facts below them."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, takewhile

from kb.text.facts import split_into_facts

from .blocks import HEADED, MAX_WHOLE, Block, Kind, as_lead
from .formats import Fact, SourceDocument
from .furniture import is_of_its_page, trimmed
from .questions import with_questions

_HEADING_LIMIT = 300
_MAX_DEPTH = 8
# A paragraph that begins so means nothing without the one before: "Exception: ...".
_EXCEPTS = re.compile(
    r"(?:exceptions?|except|notes?|please note|however|otherwise|ausnahmen?|hinweis|achtung)"
    r"\b(?=[:,]| (?:for|that|if|when|für|bei)\b)",
    re.IGNORECASE,
)
_MIN_CONTENTS = 3  # lines that name headings
_CONTENTS = re.compile(
    r"(?:table of )?contents|(?:on|in) this (?:page|guide|document)|"
    r"inhalt(?:sverzeichnis)?|auf dieser seite",
    re.IGNORECASE,
)
_AROUND_HEADING = re.compile(
    r"^\s*(?:[-*\u2022\u2013]\s+)?|(?:\t|[ .\u2026]{3,})\s*\d*\s*$"
)
_CAPTION = re.compile(r"(?:table|tabelle|tab\.) ?\d[\d.]{0,5}\b", re.IGNORECASE)
_IN_A_SENTENCE = re.compile(rf"{_CAPTION.pattern}(?! *[:.)\u2013-])", re.IGNORECASE)
# Titles that programs write where nobody gave one.
_NO_TITLE = re.compile(
    r"(?:about:.*|untitled(?: document)?\W*\d*|unbenannt|(?:word )?document\W*\d*|"
    r"dokument\W*\d*|new page)?",
    re.IGNORECASE,
)
# Characters that programs leave in a text and entries must not contain, such as the
# soft hyphen.
_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b\ufeff\ud800-\udfff]"
)
# Compatibility forms of letters and digits, which nobody types; other forms have a
# meaning (m², ½).
_OTHER_FORM = re.compile(r"[\ufb00-\ufb06\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]")


def as_document(
    blocks: Iterable[Block], *, language: str, title: str = ""
) -> SourceDocument:
    """Make a document of blocks: headings form its tree, the rest its facts.

    A list or table includes the preceding sentence if that ends in a colon, a table
    also its caption. An empty heading closes those of its level and below. Lines about
    the document itself are left out.
    """
    path: list[tuple[int, str]] = []
    paths: list[tuple[str, ...]] = []
    facts: list[Fact] = []
    left_out: list[Fact] = []
    first = ""
    asked: dict[str, str] = {}
    marked = _captioned(with_questions(_marked(blocks, language)))
    for block in _joined(_with_exceptions(marked)):
        if block.kind is Kind.HEADING:
            heading = _clean(" ".join(block.text.split()))[:_HEADING_LIMIT].strip()
            while path and path[-1][0] >= block.level:
                path.pop()
            if not heading:
                continue
            first = first or heading
            path.append((block.level, heading))
            del path[_MAX_DEPTH:]
            paths.append(tuple(name for _, name in path))
        else:
            headings = tuple(name for _, name in path)
            is_furniture = block.kind is Kind.FURNITURE
            texts: Iterable[str] = _texts(block, language)
            question = _clean(" ".join(block.question.split()))
            # Two entries with one question contradict each other: the second gets none.
            if question and asked.setdefault(question, block.text) != block.text:
                texts, question = [f"{question}\n{block.text}"], ""
            (left_out if is_furniture else facts).extend(
                Fact(text, block.place, question=question, headings=headings)
                for text in map(_clean, texts)
                if any(map(str.isalnum, text))
            )
    if not first and len(asked) == 1:
        (first,) = asked  # a page that answers one question
    own = _clean(" ".join(title.split())[:_HEADING_LIMIT])
    return SourceDocument(
        title=first if _NO_TITLE.fullmatch(own) else own,
        source="",
        headings=tuple(dict.fromkeys(paths)),
        facts=tuple(facts),
        left_out=tuple(left_out),
    )


def _clean(text: str) -> str:
    text = _OTHER_FORM.sub(
        lambda form: unicodedata.normalize("NFKC", form[0]), _UNPRINTABLE.sub("", text)
    )
    return unicodedata.normalize("NFC", text).strip()


def _marked(blocks: Iterable[Block], language: str) -> list[Block]:
    """Put lines about the document itself into blocks of their own."""
    prose = (Kind.HEADING, Kind.PARAGRAPH)
    found = [
        replace(block, kind=Kind.FURNITURE)
        if block.kind in prose and all(map(is_of_its_page, block.lines))
        else block
        for block in _without_contents([*blocks])
    ]
    found = list(_trimmed(found, language, from_end=False))
    return list(_trimmed(found[::-1], language, from_end=True))[::-1]


def _without_contents(blocks: Sequence[Block]) -> list[Block]:
    """Mark tables of contents: lines that name headings further down."""
    below: set[str] = set()
    names_others = [False] * len(blocks)
    for at in reversed(range(len(blocks))):
        block = blocks[at]
        if block.kind is Kind.HEADING:
            below.add(_named(block.text))
        elif block.kind in (Kind.PARAGRAPH, Kind.LIST):
            names_others[at] = all(_named(line) in below for line in block.lines)
    found = [*blocks]
    for is_contents, run in groupby(range(len(blocks)), key=names_others.__getitem__):
        places = [*run]
        lead = blocks[places[0] - 1].text.strip() if places[0] else ""
        is_led = _CONTENTS.fullmatch(lead.strip(" :")) is not None
        count = sum(len(blocks[at].lines) for at in places)
        if (
            not is_contents
            or count < _MIN_CONTENTS
            or (lead[-1:] == ":" and not is_led)
        ):
            continue
        for at in [places[0] - 1, *places] if is_led else places:
            found[at] = replace(blocks[at], kind=Kind.FURNITURE)
    return found


def _named(line: str) -> str:
    """Return a heading's words, without a leading bullet and a trailing page number."""
    return " ".join(_AROUND_HEADING.sub("", line).split()).casefold()


def _trimmed(
    blocks: Iterable[Block], language: str, *, from_end: bool
) -> Iterator[Block]:
    """Trim paragraphs from the first block on, until some text, list or table stays."""
    is_over = False
    for block in blocks:
        if is_over or block.kind is not Kind.PARAGRAPH:
            yield block
            is_over |= block.kind in (Kind.LIST, Kind.TABLE, Kind.CODE, Kind.PAIR)
            continue
        rest, taken = trimmed(block.lines, language, from_end=from_end)
        if taken:
            yield replace(block, kind=Kind.FURNITURE, lines=tuple(taken))
        if rest:
            yield replace(block, lines=rest)
            is_over = True


def _with_exceptions(blocks: Iterable[Block]) -> list[Block]:
    """Join each paragraph with the following ones that state exceptions to it."""
    found: list[Block] = []
    for block in blocks:
        last = found[-1] if found else None
        are_prose = last and last.kind is block.kind is Kind.PARAGRAPH
        if last and are_prose and _EXCEPTS.match(block.text):
            found[-1] = replace(last, lines=(*last.lines, *block.lines))
        else:
            found.append(block)
    return found


def _captioned(blocks: Iterable[Block]) -> list[Block]:
    """Mark captions, and put each above its table even if all of them are below."""
    found = [
        replace(block, kind=Kind.CAPTION)
        if block.kind is Kind.PARAGRAPH and _CAPTION.match(block.text)
        else block
        for block in blocks
    ]
    kinds = [None, *(block.kind for block in found), None]
    captions = [at for at, block in enumerate(found) if block.kind is Kind.CAPTION]
    are_below = all(
        kinds[at] is Kind.TABLE and not _IN_A_SENTENCE.match(found[at].text)
        for at in captions
    )
    if are_below and any(kinds[at + 2] is not Kind.TABLE for at in captions):
        for at in captions:
            found[at - 1 : at + 1] = found[at], found[at - 1]
    return found


def _joined(blocks: Iterable[Block]) -> Iterator[Block]:
    lead: Block | None = None
    for block in blocks:
        whole = block.kind in (Kind.TABLE, Kind.CODE) or (
            block.kind is Kind.LIST
            and lead is not None
            and lead.kind is not Kind.CAPTION
        )
        if lead is not None and whole:
            *before, last = lead.text.rsplit(". ", 1)
            if lead.kind is Kind.CAPTION:
                before, last = [], as_lead(lead.text)
            elif before and not any(map(str.isalpha, before[0])):
                # Not a sentence but a clause's number: "4.1. We pay for:".
                before, last = [], lead.text
            if before:
                yield Block(lead.kind, (f"{before[0]}.",), lead.place)
            yield Block(block.kind, (last, *block.lines), lead.place)
            lead = None
            continue
        if lead is not None:
            yield replace(lead, kind=Kind.PARAGRAPH)
            lead = None
        if block.kind is Kind.CAPTION or (
            block.kind is Kind.PARAGRAPH and block.text.rstrip().endswith(":")
        ):
            lead = block
        else:
            yield block
    if lead is not None:
        yield replace(lead, kind=Kind.PARAGRAPH)


def _texts(block: Block, language: str) -> Iterator[str]:
    if block.kind is Kind.FURNITURE:
        yield from _cut(block.lines, joint="\n", head="")
    elif block.kind is Kind.PARAGRAPH:
        for text in split_into_facts(block.text, language):
            yield from _cut(text.split(" "), joint=" ", head="")
    else:
        leads = len([*takewhile(_is_lead, block.lines)])
        if block.kind in (Kind.TABLE, Kind.CODE):  # the column headings follow the lead
            leads += 1 + (HEADED in block.lines[leads + 1 : leads + 2])
        is_whole = block.kind is Kind.PAIR or leads >= len(block.lines)
        head = "" if is_whole else "\n".join(block.lines[:leads])
        yield from _cut(block.lines, joint="\n", head=head)


def _is_lead(line: str) -> bool:
    return line.rstrip().endswith(":") and " | " not in line


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
