"""Questions in a text, each with its answer, as people write lists of them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from .blocks import MAX_WHOLE, Block, Kind, as_lead

MAX_QUESTION = 300
"""Maximum characters of a question; fewer if only its question mark shows it."""

BELOW = 7
"""The level of a question that becomes a heading because its answer is long."""

_MAX_UNMARKED = 200
# Maximum characters of an answer if only a question mark shows the question. A chapter
# may have a question as its heading, and is cut into paragraphs as usual.
_MAX_SAID = 1_500
_ASKED = re.compile(
    r"\A(?:(?:q|question|frage) ?\d{0,3} ?[:.)\u2013-]|f ?\d{0,3} ?:)\s+", re.IGNORECASE
)
_ANSWERED = re.compile(r"\A(?:a|answer|antwort) ?\d{0,3} ?[:.)]\s+", re.IGNORECASE)
_NUMBER = re.compile(r"\A(?:-|\d{1,3}[.)]|\d{1,3}(?:\.\d{1,3})+\.?)\s+")
_SENTENCE_END = re.compile(r"[.!:]\s")
_BOTH = re.compile(r"(?P<question>[^?]{8,200}\?)\s+(?P<answer>\S.{9,})")
# Questions that pages ask their readers, and labels that only open something.
_ASKS_NOTHING = re.compile(
    r"(?:(?:show|read|view|see|learn) )?(?:more|details|all|menu)(?: (?:information|"
    r"details))?\W*|mehr(?: \w+)?\W*|"
    r"(?:was|is|did) this (?:page|article|answer|information)\b.*\?|"
    r"(?:did you find|found) what you\b.*\?|(?:any|more|still have|have)(?: more| any)? "
    r"(?:questions|feedback)\?|(?:do you )?(?:need|want)(?: any| more| further)? help\?",
    re.IGNORECASE,
)


def asks_nothing(text: str) -> bool:
    """Return whether a label that opens something is not a reader's question."""
    return _ASKS_NOTHING.fullmatch(text) is not None


def paired(
    term: str, blocks: Iterable[Block], place: str, *, is_asked: bool = False
) -> Iterator[Block]:
    """Yield a term or question and its text as one block, unless that is too long."""
    said = [block for block in blocks if block.kind is not Kind.FURNITURE]
    lines = [*lines_of(said)]
    is_much = sum(map(len, lines)) > MAX_WHOLE - MAX_QUESTION or any(
        block.kind in (Kind.HEADING, Kind.PAIR) for block in said
    )
    if not term or is_much:
        yield Block(Kind.HEADING, (term,), place, BELOW)
        for block in said:
            yield replace(block, level=BELOW + block.level)
        yield Block(Kind.HEADING, ("",), place, BELOW)
    elif not said:
        if not is_asked:
            yield Block(Kind.PARAGRAPH, (term,), place)
    elif is_asked or term.endswith("?"):
        yield Block(Kind.PAIR, tuple(lines), place, question=term)
    elif said[0].kind is Kind.PARAGRAPH:
        lines[0] = f"{term.rstrip(':')}: {lines[0]}"
        yield Block(Kind.PAIR, tuple(lines), place)
    else:
        yield Block(Kind.PAIR, (f"{term.rstrip(':')}:", *lines), place)


def lines_of(blocks: Sequence[Block]) -> Iterator[str]:
    """Yield the lines of one entry's blocks, with an empty one between paragraphs."""
    for number, block in enumerate(blocks):
        if number and block.kind is Kind.PARAGRAPH:
            yield ""
        is_caption = block.kind is Kind.CAPTION
        yield from (as_lead(block.text),) if is_caption else block.lines


def with_questions(blocks: Iterable[Block]) -> list[Block]:
    """Return the blocks, with questions and their answers joined into pairs.

    A question is marked ("Q: ...", "Frage 3: ..."), or it is a heading, a paragraph or
    the first line of one, and ends in a question mark. Its answer reaches to the next
    question or heading. A list of questions that are answered elsewhere, as at the top
    of a page, is about the document itself.
    """
    parts = [*_apart(blocks)]
    found: list[Block] = []
    at = 0
    while at < len(parts):
        block = parts[at]
        at += 1
        if not block.question or block.kind is Kind.PAIR:
            found.append(block)
            continue
        end = at
        while end < len(parts) and not _ends_answer(parts[end]):
            end += 1
        pair = _closed(block, parts[at:end], parts[end : end + 1])
        found += pair or [replace(block, question="")]
        at = end if pair else at
    answered = {block.question for block in found if block.kind is Kind.PAIR}
    return [
        replace(block, kind=Kind.FURNITURE)
        if block.kind in (Kind.PARAGRAPH, Kind.LIST)
        and all(_bare(line) in answered for line in block.lines)
        else block
        for block in found
    ]


def _ends_answer(block: Block) -> bool:
    return bool(block.question) or block.kind in (Kind.HEADING, Kind.PAIR)


def _closed(
    asking: Block, behind: Sequence[Block], then: Sequence[Block]
) -> list[Block]:
    """Return a question and the blocks after it as a pair; [] if they are not one.

    Args:
        then: The block that ends the answer, if any.
    """
    said = [
        block
        for block in behind
        if block.kind is not Kind.FURNITURE and any(map(str.isalnum, block.text))
    ]
    size = sum(len(block.text) for block in said)
    is_marked = _ASKED.match(asking.text) is not None
    is_answered = said and _ANSWERED.match(said[0].text) is not None
    # "Q1: revenue grew" is about a quarter.
    is_question = is_answered or asking.question.endswith("?")
    has_parts = asking.kind is Kind.HEADING and any(
        block.kind is Kind.HEADING and block.level > asking.level for block in then
    )
    is_much = size > _MAX_SAID and not is_marked
    if not said or not is_question or has_parts or is_much:
        return []
    said = [_as_line(block) for block in said]
    said[0] = replace(
        said[0],
        lines=(_ANSWERED.sub("", said[0].lines[0], count=1), *said[0].lines[1:]),
    )
    beside = [block for block in behind if block.kind is Kind.FURNITURE]
    pair = paired(asking.question, said, asking.place, is_asked=True)
    # The question is on its heading's level: an empty heading ends the section above.
    is_heading = asking.kind is Kind.HEADING
    end = [replace(asking, lines=("",), question="")] if is_heading else []
    return [*end, *pair, *beside]


def _as_line(block: Block) -> Block:
    """Join the lines of a paragraph; return other blocks unchanged."""
    if block.kind is not Kind.PARAGRAPH:
        return block
    return replace(block, lines=(" ".join(block.text.split()),))


def _apart(blocks: Iterable[Block]) -> Iterator[Block]:
    """Split blocks where they ask; a block that is a question has it as `question`."""
    is_led = False
    for block in blocks:
        if block.kind is Kind.HEADING:
            yield replace(block, question=_question(block.text))
        elif block.kind is Kind.LIST and not is_led:
            yield from _items_apart(block)
        elif block.kind is Kind.PARAGRAPH:
            lines = [line for part in block.lines for line in part.splitlines()]
            starts = [at for at, line in enumerate(lines) if _ASKED.match(line)]
            for start, end in pairwise(sorted({0, *starts, len(lines)})):
                yield from _lines_apart(replace(block, lines=tuple(lines[start:end])))
        else:
            yield block
        is_led = block.text.rstrip().endswith(":")


def _lines_apart(block: Block) -> Iterator[Block]:
    """Yield a paragraph, or its leading question and the rest of it."""
    lines = block.lines
    is_marked = _ASKED.match(lines[0]) is not None
    end = next((at for at, line in enumerate(lines, 1) if line.rstrip()[-1:] == "?"), 0)
    if is_marked:
        answer = (at for at, line in enumerate(lines) if at and _ANSWERED.match(line))
        end = next(answer, end or len(lines))
    asked = " ".join(lines[:end])
    question, said = _question(asked), lines[end:]
    if is_marked and not said and (both := _BOTH.fullmatch(_bare(asked))):
        question, said = both["question"], (both["answer"],)
    # A sentence before a question is the end of an answer, not part of the question.
    if question and (is_marked or not _SENTENCE_END.search(question)):
        yield replace(block, lines=(asked,), question=question)
    else:
        said = lines
    if said:
        yield replace(block, lines=said)


def _items_apart(block: Block) -> Iterator[Block]:
    # In a Word document, the heading above introduces a list too.
    is_led = bool(block.lines) and _bare(block.lines[0]) == block.lines[0].strip()
    lines = block.lines[1:] if is_led else block.lines
    items = [_bare(line) for line in lines]
    if len(items) == 1 and (question := _question(items[0])):
        yield replace(block, kind=Kind.PARAGRAPH, lines=(question,), question=question)
        return
    both = [_BOTH.fullmatch(item) for item in items]
    is_nested = any(line.startswith(" ") for line in lines)
    if is_nested or is_led or not (items and all(both)):
        yield block
        return
    for each in filter(None, both):
        yield replace(
            block, kind=Kind.PAIR, lines=(each["answer"],), question=each["question"]
        )


def _bare(text: str) -> str:
    """Return a text without its leading mark or number."""
    return _ASKED.sub("", _NUMBER.sub("", " ".join(text.split()), count=1), count=1)


def _question(text: str) -> str:
    """Return a text that is a question, without its mark; "" if it is none."""
    bare = _bare(text)
    if _ASKED.match(text.strip()):
        return bare if len(bare) <= MAX_QUESTION else ""
    is_one = bare.endswith("?") and len(bare) <= _MAX_UNMARKED and " " in bare
    return bare if is_one and not asks_nothing(bare) else ""
