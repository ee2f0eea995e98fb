"""Writing whole words of the evidence and nothing else: which token may come next.

What is written is at every moment the beginning of a run of words of some piece, so the
answer stands in the evidence by construction, and it is known where.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from probes.language_model import Tokens
from qa.language_models.evidence_text import flatten, sentence_spans
from qa.language_models.grounded_prompt import end_id
from qa.pipeline.evidence import Evidence

# Letters and digits with what joins them ("1.50", "well-known", "Tarn's"), a currency
# sign before and a per cent sign behind.
_WORD: Final = re.compile(r"[$€£¥]?[^\W_]+(?:[.,:'\u2019/&-][^\W_]+)*[%°]?")


@dataclass(frozen=True, slots=True)
class Span:
    """Words of one piece.

    Attributes:
        number: The piece, 1-based.
        words: As they stand there.
        sentences: The whole sentences that hold them.
    """

    number: int
    words: str
    sentences: str


@dataclass(frozen=True, slots=True)
class _Source:
    """A piece as tokens; `offsets` are of its text with a space before it."""

    ids: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]
    starts: frozenset[int]
    ends: frozenset[int]


class Spans:
    """The runs of words of some pieces, for one answer."""

    def __init__(
        self, evidence: Sequence[Evidence], tokens: Tokens, *, limit: int
    ) -> None:
        """Take over the pieces; of each the first `limit` tokens may be written."""
        self._evidence = evidence
        self._end = end_id(tokens)
        self._sources = [_source(piece, tokens, limit) for piece in evidence]

    def allowed(self, written: Sequence[int]) -> Collection[int]:
        """Return the tokens that may come after those written so far."""
        ids, found = tuple(written), set[int]()
        for source, start in self._runs(ids):
            stop = start + len(ids)
            if ids and stop in source.ends:
                found.add(self._end)
            if stop < len(source.ids):
                found.add(source.ids[stop])
        return found or {self._end}

    def span(self, written: Sequence[int]) -> Span | None:
        """Return the words that were written, of the first piece that holds them.

        None where they were broken off in mid-word.
        """
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
    # Tokens that go on with a character that the one before began.
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
