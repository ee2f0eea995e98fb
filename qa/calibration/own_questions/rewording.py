"""The same question in other words, by rule: key words alone, and a typing error."""

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from kb.text.vocabulary import FILLERS, STOP_WORDS
from kb.text.words import starts_with_digit, tokens

_MOST_WORDS: Final = 6
_QUERY_WORDS: Final = 4
_MISTYPED: Final = re.compile(r"[^\W\d_]{5,}")  # shorter words are seldom mistyped


def key_words(question: str) -> str:
    """Return a question as it is typed into a search box; "" if that leaves no word."""
    found = _content(question)[:_MOST_WORDS]
    return " ".join(found)


def telling_words(text: str, frequencies: Counter[str]) -> str:
    """Return a short query for a fact: its rarest words by `frequencies`, in their order."""
    words = [word for word in _content(text) if not starts_with_digit(word)]
    distinct = list(dict.fromkeys(words))
    rarest = sorted(distinct, key=lambda word: (frequencies[word], -len(word), word))
    kept = set(rarest[:_QUERY_WORDS])
    return " ".join(word for word in distinct if word in kept)


def frequencies_in(texts: Iterable[str]) -> Counter[str]:
    """Return how many of the texts contain each content word."""
    return Counter(word for text in texts for word in set(_content(text)))


def mistype(question: str, chance: random.Random) -> str:
    """Return a question with one word mistyped; "" where no word is long enough.

    Two letters in the wrong order, one left out, or one doubled; never the first.
    """
    places = list(_MISTYPED.finditer(question))
    if not places:
        return ""
    word = chance.choice(places)
    at = chance.randrange(word.start() + 1, word.end() - 1)
    one, other = question[at], question[at + 1]
    written = [other + one, other, one + one + other]
    typo = chance.choice([each for each in written if each != one + other])
    return question[:at] + typo + question[at + 2 :]


def _content(text: str) -> Sequence[str]:
    return [
        word
        for word, _ in tokens(text)
        if word not in STOP_WORDS and word not in FILLERS
    ]
