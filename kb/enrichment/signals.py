"""What two short texts have in common: words, numbers, and whether they deny.

Embeddings put "in 1945" next to "in 1946" and "is" next to "is not"; these tell them
apart. English and German; in another language only numbers and words are compared.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

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


# How far a model's answer may be believed: what it says of it, and what it does.


MOST_UNREVIEWED: Final = 0.6
"""Confidence of an answer that all signals are sure of, before anybody reviewed any."""
LEAST_CONFIDENCE: Final = 0.02
"""No entry has less: the hard gate divides by it."""


@dataclass(frozen=True, slots=True)
class Signals:
    """The three signals of one answer, in [0, 1].

    Attributes:
        likelihood: Geometric mean of its tokens' probabilities; None where the model
            does not tell.
    """

    stated: float
    agreement: float
    likelihood: float | None


def likelihood_of(log_probability: float | None) -> float | None:
    """Return the geometric mean probability of a token from the mean of its logs."""
    return None if log_probability is None else math.exp(min(0.0, log_probability))


def agreement_of(
    answer: str,
    samples: Sequence[str | None],
    vectors: Sequence[np.ndarray],
) -> float:
    """Return how far the samples say what the answer does, in [0, 1].

    A sample in the same words counts 1; one in others counts the cosine of their
    meanings; other numbers, a denial, or what can't be read count 0.

    Args:
        vectors: Unit vectors of the answer and then of each sample; those of samples
            that can't be read are not looked at.
    """
    if not samples:
        return 0.0
    total = 0.0
    for sample, vector in zip(samples, vectors[1:], strict=True):
        if sample is None or not say_the_same_numbers(answer, sample):
            continue
        if normalised(answer) == normalised(sample):
            total += 1.0
        else:
            total += min(1.0, max(0.0, float(vectors[0] @ vector)))
    return total / len(samples)


def unreviewed_confidence(signals: Signals) -> float:
    """Return the confidence before anybody reviewed any: the least signal, held down."""
    known = [signals.stated, signals.agreement]
    if signals.likelihood is not None:
        known.append(signals.likelihood)
    return max(LEAST_CONFIDENCE, MOST_UNREVIEWED * min(known))
