"""Rewrites a question in the words that the entries use."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from .vocabulary import STOP_WORDS

_SPACE: Final = re.compile(r"\s+")
_HISSING: Final = ("s", "x", "z", "ch", "sh")


def reworded(text: str, means: Mapping[str, str], *, language: str) -> str:
    """Return a text with each word that has a synonym replaced by it.

    Matches whole words or phrases in any case, the longest first; in English also their
    plurals, which stay plurals. A phrase that has the synonym already stays: with
    "card" for "reader's card", "my reader's card" does. A word that is a stop word in
    lower case only counts as it was given: "IT", not "it".

    Args:
        means: {word as it was given: its synonym}.
    """
    if not means:
        return text
    pattern, by = _reading(tuple(means.items()), has_plurals=language == "en")

    def as_meant(match: re.Match[str]) -> str:
        said, plural = match[1], match[2] or ""
        word, meant = by.get(_key(said), ("", ""))
        if not meant or (_key(said) in STOP_WORDS and said != word):
            return match[0]
        if plural:
            plural = "es" if meant.endswith(_HISSING) else "s"
        return meant + plural

    return pattern.sub(as_meant, text)


@lru_cache(maxsize=64)  # the synonyms of a knowledge base are read with each question
def _reading(
    pairs: tuple[tuple[str, str], ...], *, has_plurals: bool
) -> tuple[re.Pattern[str], Mapping[str, tuple[str, str]]]:
    by = {_key(word): (word, meant) for word, meant in pairs}
    known = sorted({*by, *(_key(meant) for _, meant in pairs)}, key=len, reverse=True)
    literals = "|".join(re.escape(each).replace(r"\ ", r"\s+") for each in known)
    ending = "(s|es)?" if has_plurals else "()"
    pattern = rf"(?<!\w)({literals}){ending}(?!\w)"
    return re.compile(pattern, re.IGNORECASE), by


def _key(said: str) -> str:
    return _SPACE.sub(" ", said).lower()
