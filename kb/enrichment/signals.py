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

from kb.text.terms import terms


def normalised(text: str) -> str:
    """Return a text's words and numbers in lower case, with single spaces."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def same_numbers_and_denial(one: str, other: str) -> bool:
    ours, theirs = terms(one), terms(other)
    return ours.numbers == theirs.numbers and ours.is_negated == theirs.is_negated


def is_faithful(sentence: str, question: str, answer: str) -> bool:
    """Tell whether a sentence says what the answer does and no more.

    Its numbers are the answer's and maybe the question's, it denies where the answer
    does (or the question itself), a quarter of its content at most is new, and it holds
    at least half of what the answer adds.
    """
    said, asked, told = terms(sentence), terms(question), terms(answer)
    if not told.numbers <= said.numbers <= told.numbers | asked.numbers:
        return False
    if said.is_negated != told.is_negated and not asked.is_negated:
        return False
    words, known = set(said.words), {*asked.words, *told.words}
    if not words or len(words - known) > len(words) / 4:
        return False
    added = set(told.words) - set(asked.words)
    return len(added & words) * 2 >= len(added)


# How far a model's answer may be believed: what it says of it, and what it does.


MAX_UNREVIEWED_CONFIDENCE: Final = 0.6
"""Confidence of an answer that all signals are sure of, before anybody reviewed any."""
MIN_CONFIDENCE: Final = 0.02
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


def token_likelihood(log_probability: float | None) -> float | None:
    """Return the geometric mean probability of a token from the mean of its logs."""
    return None if log_probability is None else math.exp(min(0.0, log_probability))


def measure_agreement(
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
        if sample is None or not same_numbers_and_denial(answer, sample):
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
    return max(MIN_CONFIDENCE, MAX_UNREVIEWED_CONFIDENCE * min(known))
