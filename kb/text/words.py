"""A text as words with their places, stemmed.

References:
    The stemmers are Porter's Snowball (snowballstem.org).
"""

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import snowballstemmer

from .word_lists import LEADS, NEGATIONS

_STEMMERS: Final = {
    "en": snowballstemmer.stemmer("english"),
    "de": snowballstemmer.stemmer("german"),
}
_lock = threading.Lock()
# Numbers with their separators, clock times and ISO dates in one piece, words with
# hyphens and apostrophes, and the signs that are units.
_TOKEN: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}\.[0-9]{1,2}\.(?:[0-9]{4}|[0-9]{2})?(?![0-9])|[0-9]{1,2}:[0-9]{2}"
    r"|[0-9]+(?:[.,\u00a0\u202f][0-9]+)*|[^\W\d_]+(?:[-'\u2019][^\W\d_]+)*|[%€$£µ]"
)
_SENTENCE_END: Final = re.compile(
    r"(?<=[.!?])\s+(?=[\"'\u201c\u201e(]?[A-ZÄÖÜ\d])|\n+|(?<=;)\s"
)
_ABBREVIATED: Final = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|approx|no|nr|z\.b|d\.h|bzw|ca|mr|mrs|dr|incl)\.|\b\d{1,2}\.)$",
    re.IGNORECASE,
)
_DENIED_VERB: Final = re.compile(r"^(\w+)n['\u2019]t$")
_MOST_TEXT: Final = 4_000  # characters that are read; what a curator sees at once


@dataclass(frozen=True, slots=True)
class Span:
    """Characters start to end (0-based, end excluded) of a statement's text."""

    start: int
    end: int

    def within(self, text: str) -> str:
        """Return the words that it marks."""
        return text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Word:
    """One token: as it is compared, its stem, and where it stands."""

    said: str  # lower case
    stem: str
    span: Span
    is_name: bool  # written with a capital where no sentence begins

    @property
    def is_number(self) -> bool:
        """Whether it begins with a digit."""
        return starts_with_digit(self.said)


def starts_with_digit(said: str) -> bool:
    """Tell whether a token is a number's; a raised 2 is none."""
    return said[0] in "0123456789"


def sentences_of(text: str) -> list[Span]:
    """Return the sentences of a text; an abbreviation's dot ends none."""
    text = text[:_MOST_TEXT]
    found: list[Span] = []
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if _ABBREVIATED.search(text[start : end.start()]):
            continue
        found.append(Span(start, end.start()))
        start = end.end()
    found.append(Span(start, len(text)))
    return [span for span in found if text[span.start : span.end].strip()]


def words_of(text: str, language: str = "en", span: Span | None = None) -> list[Word]:
    """Return the words of a text, or of a part of it; places are the whole text's."""
    begin, stop = (span.start, span.end) if span else (0, min(len(text), _MOST_TEXT))
    found: list[Word] = []
    for match in _TOKEN.finditer(text, begin, stop):
        written = match[0]
        said = written.lower().replace("\u2019", "'")
        denied = _DENIED_VERB.match(said)
        place = Span(match.start(), match.end())
        if denied:
            verb = {"ca": "can", "wo": "will"}.get(denied[1], denied[1])
            found.append(Word(verb, stem(verb, language), place, False))
            said = "not"
        is_name = bool(found) and written[0].isupper() and language != "de"
        found.append(Word(said, stem(said, language), place, is_name))
    return _joined(found)


def _joined(words: Sequence[Word]) -> list[Word]:
    """Take "has to", "free of charge" and "no one" for one word each."""
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
    "has to": "has_to",
    "have to": "has_to",
    "had to": "has_to",
    "free of charge": "free",
    "at no cost": "free",
    "at no charge": "free",
    "at no extra cost": "free",
    "any more": "anymore",
    "per cent": "percent",
    "at least": "at_least",
    "at most": "at_most",
    "up to": "at_most",
    "as many as": "at_most",
    "no later than": "at_most",
    "not later than": "at_most",
    "no longer": "not",
    "younger than": "under",
    "older than": "over",
    "more than": "over",
    "less than": "under",
    "fewer than": "under",
    "day and night": "around_the_clock",
    "day or night": "around_the_clock",
    "around the clock": "around_the_clock",
    "24 hours a day": "around_the_clock",
    "at any hour": "around_the_clock",
}


@lru_cache(maxsize=20_000)
def stem(word: str, language: str = "en") -> str:
    """Return the stem of a lower-case word; as it is in a language without a stemmer."""
    stemmer = _STEMMERS.get(language)
    if stemmer is None or word in NEGATIONS or word in LEADS:
        return word
    with _lock:  # a stemmer keeps the word that it works on
        return str(stemmer.stemWord(word))
