"""How far a model's answer may be believed: what it says of it, and what it does.

Three signals, each in [0, 1]: the confidence that the model states; how far its other
answers to the same question agree; how likely its words are to it. Small models state
that they are certain of anything, so the least of the three counts until curators'
decisions tell better.

References:
    Wang et al., "Self-consistency improves chain of thought reasoning in language models"
    (2022); Malinin and Gales, "Uncertainty estimation in autoregressive structured
    prediction" (2021): length-normalised likelihood.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from .wording import normalised, say_the_same_numbers

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
