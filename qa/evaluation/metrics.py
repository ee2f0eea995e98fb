"""Counts and rates of an evaluation, each rate with its interval."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .results import Result

_Z_95 = 1.959963984540054  # the normal distribution's 0.975 quantile


@dataclass(frozen=True, slots=True)
class Rate:
    """`count` of `total`, with the Wilson 95 % interval.

    `value`, `low` and `high` are None where there was nothing to count.
    """

    count: int
    total: int

    @property
    def value(self) -> float | None:
        """The share, in [0, 1]."""
        return self.count / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The Wilson score interval at 95 % (Wilson, 1927)."""
        return wilson_interval(self.count, self.total) if self.total else None


@dataclass(frozen=True, slots=True)
class Metrics:
    """What an evaluation comes to.

    Attributes:
        false_answers: Of the questions to be refused, those that were answered.
        false_refusals: Of the questions to be answered, those that were refused.
        wrong_answers: Of all shown answers, those that are wrong: false answers and
            answers that do not hold or cite what they should.
        right: Of all questions, those that came out right.
        table: (should be answered, was answered) -> count.
        correct: Of the questions rightly answered, how many answers are correct.
        confusion: (expected label, actual label) -> count.
    """

    false_answers: Rate
    false_refusals: Rate
    wrong_answers: Rate
    right: Rate
    correct: Rate
    table: Counter[tuple[bool, bool]]
    confusion: Counter[tuple[str, str]]


def metrics_of(results: Sequence[Result]) -> Metrics:
    """Count the results."""
    table = Counter((r.case.is_answerable, r.is_answered) for r in results)
    answered = [r for r in results if r.is_answered]
    due = [r for r in answered if r.case.is_answerable]
    refusable = table[False, True] + table[False, False]
    answerable = table[True, True] + table[True, False]
    return Metrics(
        false_answers=Rate(table[False, True], refusable),
        false_refusals=Rate(table[True, False], answerable),
        wrong_answers=Rate(sum(not r.is_right for r in answered), len(answered)),
        right=Rate(sum(r.is_right for r in results), len(results)),
        correct=Rate(sum(r.is_right for r in due), len(due)),
        table=table,
        confusion=Counter((r.expected, r.actual) for r in results),
    )


def wilson_interval(count: int, total: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share.

    References:
        E. B. Wilson, "Probable inference, the law of succession, and statistical
        inference", JASA 22 (1927).

    Raises:
        ValueError: `total` is not positive, or `count` is outside [0, total].
    """
    if total <= 0 or not 0 <= count <= total:
        msg = f"{count} of {total} is no share"
        raise ValueError(msg)
    share = count / total
    spread = _Z_95**2 / total
    centre = (share + spread / 2) / (1 + spread)
    half = _Z_95 * math.sqrt(share * (1 - share) / total + spread / (4 * total))
    half /= 1 + spread
    # Rounding must not put the share itself outside its interval.
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))
