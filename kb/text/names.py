"""Which of several things of a kind a text is about: "Gold card", "Platinum card".

English only: a name is a word capitalized inside a sentence, which in German every noun
is. Deliberately literal, like `kb.text.terms`.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import Final

from .terms import stem
from .vocabulary import MONTHS, STOP_WORDS, WEEKDAYS

_WORD: Final = re.compile(r"[^\W\d_][\w'\u2019-]*")
# After these, a sentence, an item or a cell begins.
_ENDS: Final = re.compile(r"[.!?:;\n\u201c\"(|\u2022]\s*$")
_OWNERS: Final = re.compile(r"['\u2019]s$|['\u2019-]+$")
_MIN_NAME: Final = 3  # letters
_JOINED: Final = re.compile("['\u2019]")  # two words: "I'm", "Can't"
_NO_NAMES: Final = frozenset({*WEEKDAYS, *MONTHS, *STOP_WORDS})


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    stem: str
    is_capitalized: bool  # and not only because a sentence begins with it
    is_behind: bool  # directly after the word before it

    @property
    def may_be_name(self) -> bool:
        """Whether it is capitalized and no abbreviation, day, month or "I'm"."""
        return (
            len(self.text) >= _MIN_NAME
            and self.text[0].isupper()
            and not self.text.isupper()
            and not _JOINED.search(self.text)
            and self.text.lower() not in _NO_NAMES
        )


@dataclass(frozen=True, slots=True)
class Names:
    """The names that texts give to things of a kind, all as stems.

    Attributes:
        of: {kind: names directly before it}: {"card": {"gold", "platinum"}}.
        brands: Names before such a name: "Tarn" of "Tarn Gold card".
    """

    of: Mapping[str, frozenset[str]]
    brands: frozenset[str]

    @classmethod
    def in_texts(cls, texts: Iterable[str]) -> "Names":
        of: defaultdict[str, set[str]] = defaultdict(set)
        brands: set[str] = set()
        for text in texts:
            for name, kind in _named(text):
                (brands.add if kind is None else of[kind].add)(name)
        return cls(
            {kind: frozenset(of[kind] - brands) for kind in of}, frozenset(brands)
        )

    def asked_for(self, question: str) -> Mapping[str, frozenset[str]]:
        """Return the names in a question, by kind.

        These are the names known here, and other words capitalized before the kind.
        """
        words = _words(question)
        said = frozenset(word.stem for word in words)
        others = {
            (one.stem, two.stem)
            for one, two in _side_by_side(words)
            if one.is_capitalized
        }
        found = {
            kind: (names & said)
            | {name for name, of in others if of == kind} - self.brands
            for kind, names in self.of.items()
            if kind in said
        }
        return {kind: names for kind, names in found.items() if names}


def is_of_another(
    asked: Mapping[str, frozenset[str]], text: str, place: str = ""
) -> bool:
    """Return whether a text names only other things of a kind than those asked for.

    Args:
        asked: What `Names.asked_for` returns.
        place: Where the text is, such as its headings; names there count too.
    """
    if not asked:
        return False
    said = stems_in(place) | stems_in(text)
    named = _named(text)
    return any(
        not said & names and any(kind == of and name not in names for name, of in named)
        for kind, names in asked.items()
    )


def asked_by_name(
    question: str, texts: Iterable[str], *, is_word: Callable[[str], bool]
) -> frozenset[str]:
    """Return the stems of names in a question that texts use only as names.

    They are capitalized everywhere: "harrow" of "the deputy at Harrow Lane". The first
    word of the question counts only if it is not a common word.

    Args:
        is_word: Returns whether a lower-case word exists.
    """
    words = {
        word.stem
        for word in _words(question)
        if word.may_be_name
        and (
            word.is_capitalized
            or not all(is_word(part) for part in word.text.lower().split("-"))
        )
    }
    if not words:
        return frozenset()
    names: set[str] = set()
    others: set[str] = set()
    for word in chain.from_iterable(map(_words, texts)):
        (names if word.may_be_name else others).add(word.stem)
    return frozenset(words & names - others)


def stems_in(text: str) -> frozenset[str]:
    return frozenset(word.stem for word in _words(text))


@lru_cache(maxsize=4096)  # entries are read for one question after another
def _named(text: str) -> frozenset[tuple[str, str | None]]:
    """Return pairs of a name and its kind, or of a brand before a name and None."""
    return frozenset(
        (one.stem, None if two.is_capitalized else two.stem)
        for one, two in _side_by_side(_words(text))
        if one.is_capitalized
    )


@lru_cache(maxsize=4096)
def _words(text: str) -> tuple[_Word, ...]:
    found: list[_Word] = []
    end = 0
    for match in _WORD.finditer(text):
        between = text[end : match.start()]
        begins = end == 0 or bool(_ENDS.search(between))
        word = _OWNERS.sub("", match[0])
        found.append(
            _Word(
                word,
                stem(word.lower()),
                is_capitalized=len(word) > 1 and word[0].isupper() and not begins,
                is_behind=between in (" ", "-"),
            )
        )
        end = match.end()
    return tuple(found)


def _side_by_side(words: Iterable[_Word]) -> Iterator[tuple[_Word, _Word]]:
    """Yield neighbouring words, of which the second may be a name or a kind."""
    return (
        (one, two)
        for one, two in pairwise(words)
        if two.is_behind and two.stem not in STOP_WORDS
    )
