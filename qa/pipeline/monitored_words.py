"""The new and unconfident words of a segment, and the queries that they lead to.

References:
    Liu et al., "CtrlA: adaptive retrieval-augmented generation via inherent control"
    (2024), sections 3.2.3 and 3.2.4. Of its scaling, only the rule for outliers and the
    threshold can change a decision, so only these are implemented; the values
    themselves are kept as measured.
"""

import re
import statistics
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final

from kb.text.terms import stem, written_number
from kb.text.vocabulary import (
    DIRECTIONS,
    DISTRIBUTIVES,
    FILLERS,
    NEGATIONS,
    NUMBER_WORDS,
    STOP_WORDS,
)

from .values import clean_text

_WORD: Final = re.compile(r"[^\W_]+(?:[.,:'\u2019/&-][^\W_]+)*")
_POSSESSIVE: Final = re.compile(r"['\u2019]s$")
_NUMBER: Final = re.compile(r"[\d.,]+")
# Words that name nothing, directions and negations included.
_EMPTY: Final = STOP_WORDS | DISTRIBUTIVES | DIRECTIONS | NEGATIONS | FILLERS
_OUTLIER_DEVIATIONS: Final = 5.0
# With fewer values, the deviation cannot be estimated.
_MIN_BEFORE: Final = 8
_MAX_QUERY_LENGTH: Final = 300


@dataclass(frozen=True, slots=True)
class Word:
    """A word; `key` is its stem or number, `confidence` None if no token covers it."""

    text: str
    key: str
    start: int
    end: int
    confidence: float | None = None


def content_words(text: str) -> list[Word]:
    """Return a text's words without stop words, directions, negations and fillers."""
    found = []
    for match in _WORD.finditer(text):
        said = _POSSESSIVE.sub("", match[0])
        low = said.lower().replace("\u2019", "'")
        # "doesn't", "he'll"
        if low.removesuffix("n't").split("'")[0] not in _EMPTY:
            span = (match.start(), match.start() + len(said))
            found.append(Word(said, _key(low), *span))
    return found


def _key(word: str) -> str:
    is_number = word in NUMBER_WORDS or _NUMBER.fullmatch(word)
    return (written_number(word) if is_number else "") or stem(word)


def word_keys(texts: Iterable[str]) -> set[str]:
    return {word.key for text in texts for word in content_words(text)}


def tamed(values: Sequence[float]) -> tuple[float, ...]:
    """Replace outliers by the median, looking only at earlier values.

    An outlier is more than five standard deviations from the median of the values
    before it, of which there must be at least eight: a jump in the activations at a
    full stop says nothing about confidence.
    """
    kept: list[float] = []
    for value in values:
        if len(kept) >= _MIN_BEFORE:
            middle, spread = statistics.median(kept), statistics.pstdev(kept)
            if spread > 0 and abs(value - middle) > _OUTLIER_DEVIATIONS * spread:
                kept.append(middle)
                continue
        kept.append(value)
    return tuple(kept)


def new_words(
    text: str,
    tokens: Sequence[str],
    confidences: Sequence[float],
    *,
    known: AbstractSet[str],
) -> list[Word]:
    """Return the words that say something new, each with its confidence.

    Args:
        tokens: The tokens of the text; joined they begin with it.
        known: Keys of the words in the question and in earlier segments.
    """
    spans: list[tuple[int, int, float]] = []
    at = 0
    for token, value in zip(tokens, tamed(confidences), strict=True):
        spans.append((at, at + len(token), value))
        at += len(token)
    return [
        replace(
            word,
            confidence=min(
                (v for start, end, v in spans if start < word.end and word.start < end),
                default=None,
            ),
        )
        for word in content_words(text)
        if word.key not in known
    ]


def unconfident(words: Sequence[Word], threshold: float) -> list[Word]:
    """Return the words below the threshold, with those whose confidence is unknown."""
    return [w for w in words if w.confidence is None or not w.confidence >= threshold]


def augmented_query(question: str, text: str, doubted: Sequence[Word]) -> str:
    """Return the question and the segment without doubted words (CtrlA, equation 3).

    A wrong name would bias the search towards itself.
    """
    kept, at = [], 0
    for word in sorted(doubted, key=lambda word: word.start):
        kept.append(text[at : word.start])
        at = max(at, word.end)
    kept.append(text[at:])
    rest = clean_text("".join(kept))
    return bounded(f"{question} {rest}" if _WORD.search(rest) else question)


def bounded(query: str) -> str:
    """Return a query on one line, cut to the longest that a search accepts."""
    return clean_text(query)[:_MAX_QUERY_LENGTH].strip()
