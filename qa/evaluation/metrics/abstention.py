"""Abstaining where one should: the 2 x 2 table and its measures.

References:
    Kirichenko et al., "AbstentionBench: reasoning LLMs fail on unanswerable questions",
    2025: precision, recall and F1 of abstention over questions of which it is known
    whether they should be answered.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .intervals import Numbers, Statistic


@dataclass(frozen=True, slots=True)
class TwoByTwo:
    """How many questions fell where; questions that may go either way are in none.

    Attributes:
        due_answered: Should be answered, and were.
        due_refused: Should be answered, and were refused: false refusals.
        undue_answered: Should be refused, and were answered: false answers.
        undue_refused: Should be refused, and were.
    """

    due_answered: int
    due_refused: int
    undue_answered: int
    undue_refused: int

    @property
    def precision(self) -> float | None:
        """Share of the refused that should be refused; None if none was refused."""
        refused = self.due_refused + self.undue_refused
        return self.undue_refused / refused if refused else None

    @property
    def recall(self) -> float | None:
        """Share of those to be refused that were refused; None if there are none."""
        undue = self.undue_answered + self.undue_refused
        return self.undue_refused / undue if undue else None

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall, in [0, 1]; 0 where none was right.

        None where nothing was refused and nothing should have been.
        """
        wrong = self.due_refused + self.undue_answered
        counted = 2 * self.undue_refused + wrong
        return 2 * self.undue_refused / counted if counted else None


def two_by_two(
    should_answer: Sequence[bool | None], answered: Sequence[bool]
) -> TwoByTwo:
    """Count the questions of which it is known whether they should be answered."""
    pairs = list(zip(should_answer, answered, strict=True))
    return TwoByTwo(
        due_answered=pairs.count((True, True)),
        due_refused=pairs.count((True, False)),
        undue_answered=pairs.count((False, True)),
        undue_refused=pairs.count((False, False)),
    )


def abstention_f1(
    should_answer: Sequence[bool | None], answered: Sequence[bool]
) -> Statistic:
    pairs = list(zip(should_answer, answered, strict=True))
    right = np.array([pair == (False, False) for pair in pairs], dtype=np.float32)
    mistaken = np.array(
        [due is not None and due != shown for due, shown in pairs], dtype=np.float32
    )

    def f1_of(weights: Numbers) -> Numbers:
        hits, misses = weights @ right, weights @ mistaken
        counted = 2 * hits + misses
        return np.where(counted > 0, 2 * hits / np.maximum(counted, 1.0), np.nan)

    return f1_of
