"""Whether the monitor tells what a model can answer from what it can't, closed-book.

The threshold is chosen on questions that are not tested on; a threshold of another model
or another paper says nothing about this one.

References:
    Liu et al., "CtrlA" (2024), whose authors looked at 50 answerable and 50 unanswerable
    questions of SelfAware (Yin et al., Findings of ACL 2023).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from qa.evaluation.cases import Case
from qa.evaluation.metrics.intervals import Rate, bootstrap
from qa.evaluation.metrics.selective import rank
from qa.evaluation.metrics.text import contains_gold
from qa.evaluation.report.tables import TextTable, percent
from qa.exceptions import EvaluationDataError
from qa.pipeline.monitored import SegmentWriter
from qa.pipeline.monitored_words import keys_of, new_words
from qa.pipeline.refusal_detector import is_refusal

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Watched:
    """What a model wrote to a question by itself, and how confident it was.

    Attributes:
        text: The first segment of its answer.
        weakest: The least confidence of a new word; None where no word was new.
        is_refused: Whether it said that it does not know.
        is_positive: What should be told: that the question is answerable, or that the
            answer is right.
    """

    text: str
    weakest: float | None
    is_refused: bool
    is_positive: bool

    def looks(self, threshold: float) -> bool:
        """Tell whether evidence would be looked for."""
        doubted = self.weakest is None or self.weakest < threshold
        return self.is_refused or doubted

    @property
    def score(self) -> float | None:
        """What ranks it: a refusal and an answer without news come last."""
        return None if self.is_refused else self.weakest


def watch(
    writer: SegmentWriter,
    cases: Sequence[Case],
    *,
    steering: float,
    by_answer: bool,
    on_progress: Progress | None = None,
) -> list[Watched]:
    """Let the model answer every question closed-book, watched.

    Args:
        by_answer: Whether its answer's being right is to be told, and not whether the
            question is answerable.
    """
    found = []
    for number, case in enumerate(cases, start=1):
        draft = writer.write(case.question, (), (), steering=steering)
        words = new_words(
            draft.text,
            draft.tokens,
            draft.confidences,
            known=keys_of([case.question]),
        )
        values = [w.confidence for w in words if w.confidence is not None]
        right = contains_gold(draft.text, case.references) > 0
        found.append(
            Watched(
                draft.text,
                min(values, default=None),
                not draft.text or is_refusal(draft.text),
                right if by_answer else bool(case.is_answerable),
            )
        )
        if on_progress:
            on_progress(number, len(cases))
    return found


def best_threshold(watched: Sequence[Watched]) -> float:
    """Return the threshold with the best mean of both kinds' accuracies.

    Halfway between two confidences that were seen; of equally good ones the least, by
    which the least is looked for.

    Raises:
        EvaluationDataError: There is nothing to choose by.
    """
    values = sorted({w.weakest for w in watched if w.weakest is not None})
    if not values:
        msg = "No confidence was seen: there is nothing to choose by. Give more questions."
        raise EvaluationDataError(msg)
    # Below the first one nothing is in doubt, above the last one everything.
    ends = [values[0] - 1.0, *values, values[-1] + 1.0]
    tried = [(low + high) / 2 for low, high in pairwise(ends)]
    return max(tried, key=lambda t: (balanced(watched, t), -t))


def balanced(watched: Sequence[Watched], threshold: float) -> float:
    """Return the mean of both kinds' accuracies, in [0, 1]; NaN where one is missing."""
    rates = told_by(watched, threshold)
    if not all(rate.total for rate in rates):
        return math.nan
    return sum(rate.count / rate.total for rate in rates) / len(rates)


def told_by(watched: Sequence[Watched], threshold: float) -> tuple[Rate, Rate]:
    """Return how many positive ones were let pass, and how many others were not."""
    positive = [w for w in watched if w.is_positive]
    others = [w for w in watched if not w.is_positive]
    return (
        Rate(sum(not w.looks(threshold) for w in positive), len(positive)),
        Rate(sum(w.looks(threshold) for w in others), len(others)),
    )


Row = tuple[str, float, tuple[Rate, Rate], str]
"""Steering, threshold, how many of both kinds were told, AUROC with its interval."""


def self_knowledge_row(
    steering: float, chosen_by: Sequence[Watched], tested: Sequence[Watched]
) -> Row:
    """Choose a threshold on some questions and count on others."""
    threshold = best_threshold(chosen_by)
    ranking = rank(
        [watched.score for watched in tested],
        [not watched.is_positive for watched in tested],
    )
    rows = np.arange(len(tested))
    value = ranking.areas(np.ones((1, len(tested))))[1][0]
    (interval,) = bootstrap([lambda weights: ranking.areas(weights)[1]], rows)
    said = "-" if math.isnan(value) else f"{value:.2f}"
    if interval:
        said += f" ({interval[0]:.2f} to {interval[1]:.2f})"
    return f"{steering:g}", threshold, told_by(tested, threshold), said


def self_knowledge_table(
    rows: Sequence[Row],
    kinds: tuple[str, str],
) -> TextTable:
    """Return the table that is published.

    Args:
        rows: What was watched, the threshold, both rates, AUROC in words.
        kinds: What the positive ones are, and the others.
    """
    return TextTable(
        "Told by the monitor, Wilson 95 % intervals",
        ("steering", "threshold", f"{kinds[0]} let pass", f"{kinds[1]} not", "AUROC"),
        tuple(
            (name, f"{threshold:.2f}", _told(passed), _told(held), auroc)
            for name, threshold, (passed, held), auroc in rows
        ),
    )


def _told(rate: Rate) -> str:
    if rate.interval is None:
        return "-"
    low, high = (percent(bound) for bound in rate.interval)
    return f"{rate.count} of {rate.total} ({low} to {high})"
