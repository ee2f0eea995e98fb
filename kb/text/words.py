"""Splits a text into words and sentences, with their positions.

References:
    The stemmers are Porter's Snowball (snowballstem.org).
"""

import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import snowballstemmer

from .vocabulary import ABBREVIATIONS, LEADS, MONTHS, NEGATIONS

_STEMMERS: Final = {
    "en": snowballstemmer.stemmer("english"),
    "de": snowballstemmer.stemmer("german"),
}
_lock = threading.Lock()
# ISO dates, dates with dots, clock times and numbers with their separators are single
# tokens, as are words with hyphens and apostrophes, and signs that are units.
_TOKEN: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}|\d{1,2}\.\d{1,2}\.(?:\d{4}|\d{2})?(?!\d)|\d{1,2}:\d{2}"
    r"|\d+(?:[.,\u00a0\u202f]\d+)*|[^\W\d_]+(?:[-'\u2019][^\W\d_]+)*|[%€$£µ]"
)
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+(?=[\"'\u201c\u201e(]?[A-ZÄÖÜ\d])|\n+")
_CLAUSE_END: Final = re.compile(rf"{_SENTENCE_END.pattern}|(?<=;)\s")
_DENIED_VERB: Final = re.compile(r"^(\w+)n't$")


@dataclass(frozen=True, slots=True)
class Span:
    """Characters start to end (0-based, end excluded) of a text."""

    start: int
    end: int

    def within(self, text: str) -> str:
        return text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Word:
    said: str  # lower case
    stem: str
    span: Span
    is_name: bool  # capitalized, but not as the first word

    @property
    def is_number(self) -> bool:
        return starts_with_digit(self.said)


def starts_with_digit(said: str) -> bool:
    """Return whether a token is a number; a superscript 2 is not."""
    return said[0].isdecimal()


def tokens(
    text: str, start: int = 0, stop: int | None = None
) -> Iterator[tuple[str, Span]]:
    """Yield the tokens of a text in lower case; "don't" becomes "do" and "not"."""
    for match in _TOKEN.finditer(text, start, len(text) if stop is None else stop):
        said = match[0].lower().replace("\u2019", "'")
        span = Span(match.start(), match.end())
        if denied := _DENIED_VERB.match(said):
            yield {"ca": "can", "wo": "will"}.get(denied[1], denied[1]), span
            said = "not"
        yield said, span


def sentence_spans(text: str, *, clauses: bool = False) -> list[Span]:
    """Return the sentences of a text; the end of a line ends a sentence.

    The dot of an abbreviation, or of a day before its month, does not.

    Args:
        clauses: Whether a semicolon ends a sentence too.
    """
    found: list[Span] = []
    start = 0
    for end in (_CLAUSE_END if clauses else _SENTENCE_END).finditer(text):
        if not _goes_on(text[start : end.start()], text[end.end() :]):
            found.append(Span(start, end.start()))
            start = end.end()
    found.append(Span(start, len(text)))
    return [span for span in found if span.within(text).strip()]


def sentences(text: str) -> tuple[str, ...]:
    return tuple(span.within(text).strip() for span in sentence_spans(text))


def _goes_on(before: str, after: str) -> bool:
    last = (before.split() or [""])[-1].lower().lstrip("(\"'\u201c\u201e")
    if last[:-1].isdecimal() and last.endswith("."):
        following = re.match(r"[^\W\d_]+", after)
        return following is not None and following[0].lower() in MONTHS
    # "No." is an answer, "no. 5" is not.
    return last in ABBREVIATIONS and (last != "no." or after[:1].isdecimal())


def read_words(text: str, language: str = "en", span: Span | None = None) -> list[Word]:
    begin, stop = (span.start, span.end) if span else (0, len(text))
    found: list[Word] = []
    for said, place in tokens(text, begin, stop):
        is_name = bool(found) and text[place.start].isupper() and language != "de"
        found.append(Word(said, stem(said, language), place, is_name))
    return _joined(found)


def _joined(words: Sequence[Word]) -> list[Word]:
    """Merge phrases such as "has to" and "free of charge" into one word each."""
    joined: list[Word] = []
    at = 0
    while at < len(words):
        for length in (4, 3, 2):
            group = words[at : at + length]
            phrase = " ".join(word.said for word in group)
            if len(group) == length and phrase in _PHRASES:
                one = _PHRASES[phrase]
                span = Span(group[0].span.start, group[-1].span.end)
                joined.append(Word(one, one, span, False))
                at += length
                break
        else:
            joined.append(words[at])
            at += 1
    return joined


_PHRASES: Final = {
    phrase: word
    for word, phrases in {
        "has_to": ("has to", "have to", "had to"),
        "free": (
            "free of charge", "at no cost", "at no charge", "at no extra cost",
        ),
        "anymore": ("any more",),
        "percent": ("per cent",),
        "at_least": (
            "at least", "a minimum of", "no less than", "not less than", "no fewer than",
            "no earlier than",
        ),
        "at_most": (
            "at most", "up to", "as many as", "a maximum of", "no more than",
            "not more than", "no later than", "not later than",
        ),
        "not": ("no longer",),
        "under": ("younger than", "less than", "fewer than"),
        "over": ("older than", "more than"),
        "around_the_clock": (
            "day and night", "day or night", "around the clock", "24 hours a day",
            "at any hour",
        ),
    }.items()
    for phrase in phrases
}  # fmt: skip


@lru_cache(maxsize=20_000)
def stem(word: str, language: str = "en") -> str:
    """Return the stem of a lower-case word; unchanged in a language without a stemmer.

    Related words ("replace", "replacement") have the same stem, which finds more of the
    labelled contradictions; where two texts must agree, `terms.stem` is used.
    """
    stemmer = _STEMMERS.get(language)
    if stemmer is None or word in NEGATIONS or word in LEADS:
        return word
    with _lock:  # a stemmer stores the word that it works on
        return str(stemmer.stemWord(word))
