"""Which year, or which of a series, a text is about: "in 1974", "a second card", "A5".

English only, except for years. Deliberately literal, like `kb.text.terms`.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Final

from .terms import stem
from .vocabulary import STOP_WORDS

_YEAR: Final = re.compile(
    r"(?<![\d.,:/+-])(?:19|20)\d\d(?![\d.,:/%]*\d)(?! (?:euro|dollar|pound)s?\b)"
)
# Words with which a year is one of several that the text applies to.
_SPANS: Final = re.compile(
    r"\b(?:since|from|until|till|before|after|between|each|every|any|ab|seit|bis|vor|nach"
    r"|zwischen|jede[rsmn]?)\b|\d\s*[\u2013\u2014-]\s*(?:19|20)\d\d",
    re.IGNORECASE,
)
_ORDINALS: Final[Mapping[str, int]] = {
    word: number
    for number, word in enumerate(
        ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth",
         "ninth", "tenth"),
        start=1,
    )
}  # fmt: skip
# Letters and a number: a size, a form, an error.
_CODE: Final = re.compile(
    r"\b(?!(?:eur|usd|gbp|chf|rs|pre|mid|post)-?\d)([a-z]{1,3})-?(\d{1,3})\b"
)
# A text with a limit or a range of codes applies to those between them too.
_CODES: Final = re.compile(
    rf"\b(?:up to|until|from|between|than|above|over|under|below|least|most|bis|ab)\s+"
    rf"{_CODE.pattern}|{_CODE.pattern}\s*(?:[\u2013\u2014+-]|\.\.\.|\u2026|(?:to|through|bis)\b"
    r"|(?:and|or)\s+(?:above|below|over|under|up|upwards|higher|lower)\b|upwards\b)"
)
_WORD: Final = re.compile(r"\d+(?:st|nd|rd|th)\b|[^\W\d_][\w'-]*")
# Words with which a statement about one applies to the others too.
_OTHERS: Final = frozenset({
    "all", "another", "any", "both", "each", "every", "following", "further", "additional",
    "later", "more", "other", "others", "subsequent",
})  # fmt: skip


def is_of_another_turn(question: str, text: str) -> bool:
    """Return whether a text is about other years or items than those in a question."""
    if _is_of_other_years(question, text):
        return True
    turns = _turns(question)
    if not turns or _OTHERS & {word.lower() for word in _WORD.findall(text)}:
        return False
    known = _turns(text)
    return any(
        kind in known and not numbers & known[kind] for kind, numbers in turns.items()
    )


def _is_of_other_years(question: str, text: str) -> bool:
    asked = _years(question)
    said = _years(text) if asked else frozenset()
    is_apart = bool(said) and not asked & said
    return is_apart and not _SPANS.search(f"{question}\n{text}")


def _years(text: str) -> frozenset[str]:
    return frozenset(_YEAR.findall(text))


@lru_cache(maxsize=4096)  # entries are read for one question after another
def _turns(text: str) -> Mapping[str, frozenset[int]]:
    """Return places in a series by the stem of the next word, and codes by letters."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    text = text.lower()
    for one, two in pairwise(_WORD.findall(text)):
        number = _ORDINALS.get(one) or (int(one[:-2]) if one[0].isdigit() else 0)
        if number and two[0].isalpha() and two not in STOP_WORDS:
            found[stem(two)].add(number)
    if not _CODES.search(text):  # a range applies to all its codes
        for letters, code in _CODE.findall(text):
            found[f"{letters}-"].add(int(code))
    return {kind: frozenset(numbers) for kind, numbers in found.items()}
