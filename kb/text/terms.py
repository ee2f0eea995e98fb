"""Comparable terms of a text (numbers, negation, content words), and checks on them.

English and German. Deliberately literal: two texts agree if they use the same words,
never because their words are related.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from . import vocabulary
from .words import tokens

_APOSTROPHES = re.compile("[\u2018\u2019\u02bc\u00b4`]")
_LIST_MARK = re.compile(r"(?m)^\s*(?:(\d{1,2})[.)]|[-*\u2022])\s+")
_CITATION_MARK = re.compile(r"\[\d{1,2}(?:\s*,\s*\d{1,2})*\]")
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b")
_MAY = re.compile(r"(?<=\d) (?:of )?may\b|\bmay(?= \d)")
_GROUPED_BY_SPACE = re.compile(r"(?<=\d)[\u00a0\u202f\u2009 ](?=\d{3}(?!\d))")
_CLEARLY: Final = 2  # more words than another language; one could be a name
_Beginnings = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Terms:
    """The comparable content of a text."""

    words: tuple[str, ...]  # stems of content words in order, months and units included
    numbers: frozenset[str]  # canonical: "1,000.50" and "1.000,50" are "1000.5"
    units: frozenset[str]  # stems of units after numbers, of currencies before
    directions: frozenset[str]  # words whose opposite would reverse the meaning
    is_negated: bool


def is_reversed(question: str, text: str) -> bool:
    """Return whether a text mentions only the opposite of what a question asks for."""
    ends = _ends_asked_for(question)
    read = _tokens(text) if ends else []
    return any(_has_alone(read, other, one) for one, other in ends)


@lru_cache(maxsize=64)  # one question is compared with every text found
def _ends_asked_for(question: str) -> tuple[tuple[_Beginnings, _Beginnings], ...]:
    """Return each side of `REVERSALS` that a question has alone, with its opposite."""
    read = _tokens(question)
    return tuple(
        (one, other)
        for pair in vocabulary.REVERSALS
        for one, other in (pair, pair[::-1])
        if _has_alone(read, one, other)
    )


def _has_alone(
    words: Sequence[str], beginnings: _Beginnings, others: _Beginnings
) -> bool:
    return _has(words, beginnings) and not _has(words, others)


def _has(words: Sequence[str], beginnings: _Beginnings) -> bool:
    return any(word.startswith(beginnings) for word in words)


def terms(text: str) -> Terms:
    """Return the terms of `text`, ignoring citation marks and list numbers."""
    words: list[str] = []
    numbers: set[str] = set()
    directions: set[str] = set()
    is_negated = False
    read = _tokens(text)
    for token in read:
        if number := written_number(token):
            numbers.add(number)
        elif token in vocabulary.NEGATIONS:
            is_negated = True
        elif token in vocabulary.DIRECTIONS:
            directions.add(token)
        elif token not in vocabulary.STOP_WORDS:
            words.append(stem(token))
    return Terms(
        tuple(words),
        frozenset(numbers),
        frozenset(_units(read)),
        frozenset(directions),
        is_negated,
    )


def same_numbers_and_denial(one: str, other: str) -> bool:
    ours, theirs = terms(one), terms(other)
    return ours.numbers == theirs.numbers and ours.is_negated == theirs.is_negated


def question_kind(question: str) -> str:
    """Return what a question asks for, such as "place"; "" if its words do not say."""
    words = re.findall(r"\w+", question.lower())
    phrases = (*map(" ".join, pairwise(words)), *words)
    kinds = (
        vocabulary.QUESTION_KINDS[phrase]
        for phrase in phrases
        if phrase in vocabulary.QUESTION_KINDS
    )
    kind = next(kinds, "")
    return "" if kind == "amount" else kind


def canonical_number(written: str) -> str:
    """Return one spelling of a number, whatever its separators.

    A single separator before exactly three digits groups thousands in both languages.
    """
    separators = re.findall(r"[.,]", written)
    if not separators:
        return written.lstrip("0") or "0"
    last = max(written.rfind("."), written.rfind(","))
    whole, fraction = written[:last], written[last + 1 :]
    is_grouping = len(fraction) == 3 and len(set(separators)) == 1
    if is_grouping and whole not in {"0", ""}:
        whole, fraction = written, ""
    digits = re.sub(r"[.,]", "", whole).lstrip("0") or "0"
    fraction = fraction.rstrip("0")
    return f"{digits}.{fraction}" if fraction else digits


def stem(word: str) -> str:
    """Cut the most common English and German endings; stems are only for comparison.

    All spellings of a month, or of a unit of measure, have the same stem.
    """
    if word in vocabulary.MONTHS:
        return f"month{vocabulary.MONTHS[word]:.0f}"
    cut = _cut_endings(word)
    return _UNIT_STEMS.get(cut, cut)


def _cut_endings(word: str) -> str:
    word = _cut(_cut(word, _PLURALS), _INFLECTIONS)
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


# The first ending that fits is replaced; "ss" and "eed" stay.
_PLURALS = (
    ("ies", "y"),
    ("sses", "ss"),
    ("ss", "ss"),
    ("us", "us"),
    ("es", "e"),
    ("s", ""),
)
_INFLECTIONS = (
    ("ing", ""),
    ("ied", "y"),
    ("eed", "eed"),
    ("ed", ""),
    ("en", ""),
    ("em", ""),
)


def is_month(stemmed: str) -> bool:
    return stemmed in _MONTH_STEMS


def _cut(word: str, endings: tuple[tuple[str, str], ...]) -> str:
    for ending, replacement in endings:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + replacement
    return word


_MONTH_STEMS = frozenset(map(stem, vocabulary.MONTHS))
# Only words for units that mean nothing else: not "times", "m" or "h".
_UNIT_STEMS = {
    _cut_endings(word): name
    for word, name in vocabulary.UNIT_NAMES.items()
    if name != "times" and not (len(word) == 1 and word.isalpha())
}
_UNITS = frozenset(_UNIT_STEMS.values())


def _units(tokens: Sequence[str]) -> Iterator[str]:
    for before, after in pairwise(tokens):
        if written_number(before) and stem(after) in _UNITS:
            yield stem(after)
        elif written_number(after) and stem(before) in vocabulary.CURRENCIES:
            yield stem(before)


def written_number(token: str) -> str:
    """Return the number in a token, or ""; "one" and "half" count as words."""
    if token[0].isdecimal():
        return canonical_number(token)
    value = vocabulary.NUMBER_WORDS.get(token, 1.0)
    return "" if 0 < value <= 1 else f"{value:.0f}"


def _tokens(text: str) -> list[str]:
    text = unicodedata.normalize("NFKC", text)
    text = _APOSTROPHES.sub("'", text).lower()
    text = _CITATION_MARK.sub(" ", _without_list_numbers(text))
    text = _MAY.sub(" mai", _ORDINAL.sub("", text))
    text = _GROUPED_BY_SPACE.sub("", text)
    return [part for token, _ in tokens(text) for part in _parts(token)]


def _parts(token: str) -> list[str]:
    """Split dates and times into their numbers, and remove "'s" from words."""
    if not token[0].isdecimal():
        return [part for part in token.removesuffix("'s").split("'") if part]
    parts = re.split("[-:]", token.rstrip("."))
    if len(parts) == 3:
        month = next(
            (m for m, n in vocabulary.MONTHS.items() if n == int(parts[1])), parts[1]
        )
        # "may" alone would be read as the verb.
        parts[1] = "mai" if month == "may" else month
    return parts


def _without_list_numbers(text: str) -> str:
    """Remove "1." and "2." at line starts; "30." without a 29 before it is a fact."""
    expected = 1

    def replacement(mark: re.Match[str]) -> str:
        nonlocal expected
        if mark[1] is None:
            return " "
        if int(mark[1]) not in (1, expected):
            return mark[0]
        expected = int(mark[1]) + 1
        return " "

    return _LIST_MARK.sub(replacement, text)


_PATTERNS: Final = {
    language: re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE)
    for language, words in vocabulary.NOW.items()
}


def language_of(text: str) -> str | None:
    """Return "en" or "de" if a text clearly has more stop words of it, else None."""
    words = set(re.findall(r"[^\W\d_]+", text.casefold()))
    counts = {
        language: len(words & small)
        for language, small in vocabulary.STOP_WORDS_BY_LANGUAGE.items()
    }
    first, second, *_ = sorted(counts, key=counts.__getitem__, reverse=True)
    return first if counts[first] >= counts[second] + _CLEARLY else None


def asks_about_now(question: str, language: str = "en") -> bool:
    """Return whether the answer depends on the date of the question."""
    plain = " ".join(question.replace("\u2019", "'").split())
    return _PATTERNS.get(language, _PATTERNS["en"]).search(plain) is not None
