"""What a text says in terms that can be compared: numbers, negation, content words.

English and German. Deliberately literal: two texts agree when they use the same words,
never because their words are related.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .vocabulary import (
    ABBREVIATIONS,
    ALIASES,
    DIRECTIONS,
    MONTHS,
    NEGATIONS,
    NUMBER_WORDS,
    STOP_WORDS,
    UNIT_SYMBOLS,
    UNIT_WORDS,
)

_APOSTROPHES = re.compile("[\u2018\u2019\u02bc\u00b4`]")
_NEGATED_VERB = re.compile(r"\b(can)(?:'t|not)\b|\b(\w+)n't\b")
_LIST_MARK = re.compile(r"(?m)^\s*(?:(\d{1,2})[.)]|[-*\u2022])\s+")
_CITATION_MARK = re.compile(r"\[\d{1,2}(?:\s*,\s*\d{1,2})*\]")
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b")
_MAY = re.compile(r"(?<=\d) (?:of )?may\b|\bmay(?= \d)")
_ISO_DATE = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_GROUPED_BY_SPACE = re.compile(r"(?<=\d)[\u00a0\u202f\u2009 ](?=\d{3}(?!\d))")
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:-[^\W\d_]+)*")
_SENTENCE_END = re.compile(
    r"(?<=[.!?])\s+(?=[\"'\u201c\u201e(]?[A-Z\u00c4\u00d6\u00dc\d])"
)


@dataclass(frozen=True, slots=True)
class Terms:
    """The comparable content of a text.

    Attributes:
        words: Stems of the content words in order, months and units included.
        numbers: Canonical numbers: "1,000.50" and "1.000,50" are both "1000.5".
        units: Stems of what the numbers count: a unit behind one, a currency before it.
        directions: Words whose opposite would turn the meaning ("before", "out").
        is_negated: Whether anything in it is denied.
    """

    words: tuple[str, ...]
    numbers: frozenset[str]
    units: frozenset[str]
    directions: frozenset[str]
    is_negated: bool


def terms(text: str) -> Terms:
    """Read the terms of `text`; citation marks and list numbers say nothing."""
    words: list[str] = []
    numbers: set[str] = set()
    directions: set[str] = set()
    is_negated = False
    tokens = _tokens(text)
    for token in tokens:
        if token[0].isdigit():
            numbers.add(canonical_number(token))
        elif token in NUMBER_WORDS:
            numbers.add(NUMBER_WORDS[token])
        elif token in NEGATIONS:
            is_negated = True
        elif token in DIRECTIONS:
            directions.add(token)
        elif token not in STOP_WORDS:
            words.append(stem(token))
    return Terms(
        tuple(words),
        frozenset(numbers),
        frozenset(_units(tokens)),
        frozenset(directions),
        is_negated,
    )


def sentences(text: str) -> tuple[str, ...]:
    """Split `text` at sentence ends and line breaks; never at an abbreviation's dot."""
    found: list[str] = []
    for line in text.splitlines():
        pieces: list[str] = []
        for piece in _SENTENCE_END.split(line.strip()):
            if pieces and _goes_on(pieces[-1], piece):
                pieces[-1] = f"{pieces[-1]} {piece}"
            else:
                pieces.append(piece)
        found += [piece for piece in pieces if piece]
    return tuple(found)


def canonical_number(written: str) -> str:
    """Return one spelling of a number whatever separators it was written with.

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
    """Cut the commonest English and German endings; a stem is for comparing only."""
    word = ALIASES.get(word, word)
    if word in MONTHS:
        return MONTHS[word]
    word = _cut(_cut(word, _PLURALS), _INFLECTIONS)
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


# The first ending that fits is replaced; "ss" and "eed" stand for themselves.
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
    """Tell whether a stem stands for one of the twelve months."""
    return stemmed in _MONTH_STEMS


def _cut(word: str, endings: tuple[tuple[str, str], ...]) -> str:
    for ending, replacement in endings:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + replacement
    return word


_UNITS = frozenset(map(stem, UNIT_WORDS))
_CURRENCIES = frozenset({"euro", "dollar", "pound"})
_MONTH_STEMS = frozenset(MONTHS.values())


def _units(tokens: Sequence[str]) -> Iterator[str]:
    for before, after in pairwise(tokens):
        if _is_number(before) and stem(after) in _UNITS:
            yield stem(after)
        elif _is_number(after) and stem(before) in _CURRENCIES:
            yield stem(before)


def _is_number(token: str) -> bool:
    return token[0].isdigit() or token in NUMBER_WORDS


def _tokens(text: str) -> list[str]:
    text = unicodedata.normalize("NFKC", text)
    text = _APOSTROPHES.sub("'", text).lower()
    text = _CITATION_MARK.sub(" ", _without_list_numbers(text))
    text = _NEGATED_VERB.sub(lambda m: f"{m[1] or m[2]} not", text)
    text = re.sub(r"'s\b|'(?=\s|$)", " ", text)
    for symbol, word in UNIT_SYMBOLS.items():
        text = text.replace(symbol, f" {word} ")
    text = _ISO_DATE.sub(lambda m: f"{m[1]} {_month(m[2])} {m[3]}", text)
    text = _MAY.sub(" mai", _ORDINAL.sub("", text))
    text = _GROUPED_BY_SPACE.sub("", text)
    return _TOKEN.findall(text)


def _without_list_numbers(text: str) -> str:
    """Take out "1." and "2." at line starts; "30." where no 29 went before is a fact."""
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


def _month(number: str) -> str:
    name = f"month{int(number)}"
    # "may" alone would be read as the verb.
    return next((m for m, n in MONTHS.items() if n == name and m != "may"), number)


def _goes_on(before: str, after: str) -> bool:
    last = before.split()[-1].lower()
    # "No." is an answer, "no. 5" is not.
    return last in ABBREVIATIONS and (last != "no." or after[0].isdigit())
