"""What two short texts have in common: words, numbers, and whether they deny.

Embeddings put "in 1945" next to "in 1946" and "is" next to "is not"; these tell them
apart. English and German; in another language only numbers and words are compared.
"""

import re
from typing import Final

_WORD: Final = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_DENYING: Final = frozenset(
    ["no", "not", "never", "none", "nobody", "nothing", "neither", "nor", "cannot", "without", "kein", "keine", "keinen", "keiner", "keines", "keinem", "nicht", "nie", "niemals", "niemand", "nichts", "weder", "ohne", "nein"]
)  # fmt: skip
# Words of so few letters carry structure and no content.
_LONGEST_STRUCTURE: Final = 3
# Question words and auxiliaries that a declarative sentence drops or adds.
_STRUCTURE: Final = frozenset(
    [
        "what",
        "which",
        "whom",
        "whose",
        "where",
        "when",
        "that",
        "this",
        "these",
        "those",
        "there",
        "their",
        "they",
        "them",
        "then",
        "does",
        "were",
        "have",
        "been",
        "being",
        "will",
        "would",
        "could",
        "should",
        "shall",
        "might",
        "must",
        "because",
        "with",
        "from",
        "into",
        "about",
        "than",
        "also",
        "both",
        "such",
        "only",
        "very",
        "more",
        "most",
        "some",
        "many",
        "much",
        "your",
        "yours",
        "welche",
        "welcher",
        "welches",
        "wann",
        "warum",
        "wohin",
        "woher",
        "dass",
        "diese",
        "dieser",
        "dieses",
        "wird",
        "werden",
        "wurde",
        "wurden",
        "sind",
        "sein",
        "haben",
        "hatte",
        "kann",
        "können",
        "muss",
        "müssen",
        "nach",
        "über",
        "unter",
        "auch",
    ]
)
_STEM: Final = 5


def normalised(text: str) -> str:
    """Return a text's words and numbers in lower case, with single spaces."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def numbers(text: str) -> frozenset[str]:
    """Return the numbers that are written in digits, as they stand."""
    return frozenset(_NUMBER.findall(text))


def denies(text: str) -> bool:
    """Tell whether the text holds a word of denial."""
    words = (word.casefold().replace("\u2019", "'") for word in _WORD.findall(text))
    return any(word in _DENYING or word.endswith("n't") for word in words)


def content(text: str) -> frozenset[str]:
    """Return the beginnings of the words that carry content."""
    words = (word.casefold() for word in _WORD.findall(text))
    return frozenset(
        word[:_STEM]
        for word in words
        if len(word) > _LONGEST_STRUCTURE
        and word not in _STRUCTURE
        and word not in _DENYING
    )


def say_the_same_numbers(one: str, other: str) -> bool:
    """Tell whether two texts agree in their numbers and in whether they deny."""
    return numbers(one) == numbers(other) and denies(one) == denies(other)


def is_faithful(sentence: str, question: str, answer: str) -> bool:
    """Tell whether a sentence says what the answer does and no more.

    Its numbers are the answer's and maybe the question's, it denies where the answer
    does (or the question itself), a quarter of its content at most is new, and it holds
    at least half of what the answer adds.
    """
    given = f"{question} {answer}"
    if not numbers(answer) <= numbers(sentence) <= numbers(given):
        return False
    if denies(sentence) != denies(answer) and not denies(question):
        return False
    said, known, added = content(sentence), content(given), content(answer)
    if not said or len(said - known) > len(said) / 4:
        return False
    added -= content(question)
    return len(added & said) * 2 >= len(added)
