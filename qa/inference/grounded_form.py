"""The grounded form as tokens: notes, a question, and the note's words that answer it.

Every text is encoded on its own, so that it can neither become a control token nor run
into the structure around it.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kb.types import Evidence
from probes.language_model import Tokens
from probes.language_model.second_pass import Passing
from qa.inference.evidence_text import (
    MAX_ENTRY_TOKENS,
    MAX_QUESTION_TOKENS,
    flatten,
    note_text,
    sentence_spans,
)
from qa.pipeline.language_model import Prompt

FORM: Final = "grounded-1"
INSTRUCTION: Final = (
    "Answer the question with words of the notes. If no note answers it, write nothing."
    "\n\n"
)


def instruction_ids(tokens: Tokens) -> tuple[int, ...]:
    return tokens.encode_text(INSTRUCTION)


def notes_ids(
    tokens: Tokens, question: str, evidence: Sequence[Evidence]
) -> tuple[int, ...]:
    """Return what follows the fixed prefix: the notes, best first, and the question."""
    ids: list[int] = []
    line = tokens.encode_text("\n")
    for piece in evidence:
        ids += tokens.encode_text(f"Note: {note_text(piece)}")[:MAX_ENTRY_TOKENS]
        ids += line
    asked = tokens.encode_text(f"Question: {flatten(question).strip()}")
    ids += asked[:MAX_QUESTION_TOKENS]
    return (*ids, *line, *tokens.encode_text("Answer:"))


def prompt_ids(
    tokens: Tokens, prompt: Prompt, *, pieces: int | None = None
) -> tuple[int, ...]:
    notes = notes_ids(tokens, prompt.question, prompt.evidence[:pieces])
    return (*instruction_ids(tokens), *notes)


def answer_ids(tokens: Tokens, answer: str) -> tuple[int, ...]:
    """Return the answer and its end token; for an empty answer, only the end token."""
    said = flatten(answer).strip()
    written = tokens.encode_text(f" {said}") if said else ()
    return (*written, end_id(tokens))


def end_id(tokens: Tokens) -> int:
    return min(tokens.end_ids)


def answer_passing(
    tokens: Tokens, prompt: Prompt, answer: str, *, pieces: int | None = None
) -> Passing:
    """Return the second pass over an answer that keeps its tokens and its end token."""
    before = prompt_ids(tokens, prompt, pieces=pieces)
    ids = (*before, *answer_ids(tokens, answer))
    return Passing(ids, len(before), len(ids))


def sequence_passing(
    tokens: Tokens,
    prompt: Prompt,
    answer: str,
    *,
    written: str = "",
    pieces: int | None = None,
) -> Passing:
    """Return the second pass that also keeps the prompt's last token.

    `written`, the whole output, is not needed: nothing else precedes an answer.
    """
    passing = answer_passing(tokens, prompt, answer, pieces=pieces)
    return replace(passing, start=passing.start - 1)


# Letters and digits with what joins them ("1.50", "well-known", "Tarn's"), a currency
# sign before them and a percent sign after them.
_WORD: Final = re.compile(r"[$€£¥]?[^\W_]+(?:[.,:'\u2019/&-][^\W_]+)*[%°]?")


@dataclass(frozen=True, slots=True)
class Span:
    """Words of one piece (1-based), and the whole sentences that contain them."""

    number: int
    words: str
    sentences: str


@dataclass(frozen=True, slots=True)
class _Source:
    """A piece as tokens; `offsets` refer to its text with a space before it."""

    ids: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]
    starts: frozenset[int]
    ends: frozenset[int]


class Spans:
    def __init__(
        self, evidence: Sequence[Evidence], tokens: Tokens, *, limit: int
    ) -> None:
        self._evidence = evidence
        self._end = end_id(tokens)
        self._sources = [_source(piece, tokens, limit) for piece in evidence]

    def allowed(self, written: Sequence[int]) -> Collection[int]:
        """Return the tokens that may follow those written so far."""
        ids, found = tuple(written), set[int]()
        for source, start in self._runs(ids):
            stop = start + len(ids)
            if ids and stop in source.ends:
                found.add(self._end)
            if stop < len(source.ids):
                found.add(source.ids[stop])
        return found or {self._end}

    def span(self, written: Sequence[int]) -> Span | None:
        """Return the written words in the first piece with them; None if cut off."""
        ids = tuple(written)
        for source, start in self._runs(ids):
            stop = start + len(ids)
            if ids and stop in source.ends:
                number = self._sources.index(source) + 1
                first, last = source.offsets[start][0], source.offsets[stop - 1][1]
                return _span(self._evidence[number - 1], number, first, last)
        return None

    def _runs(self, ids: tuple[int, ...]) -> list[tuple[_Source, int]]:
        return [
            (source, start)
            for source in self._sources
            for start in sorted(source.starts)
            if source.ids[start : start + len(ids)] == ids
        ]


def _source(piece: Evidence, tokens: Tokens, limit: int) -> _Source:
    text = f" {flatten(piece.text)}"
    ids, offsets = tokens.encode_with_offsets(text)
    ids, offsets = ids[:limit], offsets[:limit]
    words = [match.span() for match in _WORD.finditer(text)]
    begins, ends = {start for start, _ in words}, {end for _, end in words}
    # Tokens that continue a character that the previous token began.
    inner = {i for i in range(1, len(ids)) if offsets[i][0] < offsets[i - 1][1]}
    return _Source(
        ids,
        offsets,
        # A token may begin with the space before its word.
        starts=frozenset(
            index
            for index, (start, end) in enumerate(offsets)
            if end - len(text[start:end].lstrip()) in begins and index not in inner
        ),
        ends=frozenset(
            index
            for index, (_, end) in enumerate(offsets, start=1)
            if end in ends and index not in inner
        )
        | {len(ids)},
    )


def _span(piece: Evidence, number: int, start: int, end: int) -> Span:
    """Return the words from `start` to `end` of the text with a space before it."""
    text = f" {flatten(piece.text)}"
    end -= len(text[start:end]) - len(text[start:end].rstrip())
    start += len(text[start:end]) - len(text[start:end].lstrip())
    held = [span for span in sentence_spans(text) if span[0] < end and start < span[1]]
    first, last = held[0][0], held[-1][1]
    return Span(
        number, piece.text[start - 1 : end - 1], piece.text[first - 1 : last - 1]
    )
