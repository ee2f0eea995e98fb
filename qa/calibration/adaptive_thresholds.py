"""Thresholds of adaptive policies: minimum known probability and token confidence.

Risk-coverage curve: El-Yaniv and Wiener (2010). Binary search, testing each step at
delta divided by the number of steps: Geifman and El-Yaniv (2017), arXiv 1705.08500,
algorithm 2.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Final

import numpy as np

from qa.calibration.thresholds.learn_then_test import group_bound
from qa.calibration.thresholds.values import upper_bounds
from qa.evaluation.cases import Case
from qa.evaluation.metrics.intervals import Interval, Rate, bootstrap, clusters_of
from qa.evaluation.metrics.selective import Scores, rank, risk_coverage
from qa.evaluation.metrics.text import contains_gold
from qa.evaluation.report.tables import TextTable, percent
from qa.exceptions import EvaluationDataError
from qa.pipeline.monitored import SegmentWriter
from qa.pipeline.monitored_words import new_words, word_keys
from qa.pipeline.refusal_detector import is_refusal

_CURVE_ROWS = 12
_CURVE_POINTS: Final = 200


@dataclass(frozen=True, slots=True)
class Threshold:
    """A minimum known_probability, its coverage, risk and risk bound, all in [0, 1]."""

    min_known: float
    coverage: float
    risk: float
    bound: float


@dataclass(frozen=True, slots=True)
class Proposal:
    """Thresholds for a target risk; None where no threshold meets it.

    `seen` meets the target on these questions only. The risk of `guaranteed` is at most
    the target with probability 1 - delta, whether questions were sampled individually
    or in groups. The curve starts at the strictest threshold.
    """

    seen: Threshold | None
    guaranteed: Threshold | None
    curve: tuple[Threshold, ...]


def propose_min_known(
    known_probability: Scores,
    right: Sequence[bool],
    *,
    risk: float,
    delta: float,
    groups: Sequence[str] = (),
) -> Proposal:
    """Return thresholds whose risk is at most `risk`, in [0, 1].

    `known_probability` is in [0, 1], or None for a question that the model never
    answers without evidence. `delta`, in (0, 1), is the probability that the guaranteed
    threshold exceeds the risk. `groups` names the group of each question; questions of
    one group may depend on each other. Without `groups`, or where it is "", each
    question is a group of its own.

    Raises:
        ValueError: The lengths differ, or a number is out of range.
    """
    if not 0 <= risk <= 1 or not 0 < delta < 1:
        raise ValueError(
            f"risk {risk} is not in [0, 1], or delta {delta} not in (0, 1)"
        )
    curve = risk_coverage(known_probability, [not one for one in right])
    steps = [
        (score, coverage, wrong)
        for score, coverage, wrong in zip(
            curve.threshold, curve.coverage, curve.risk, strict=True
        )
        if score is not None
    ]
    level = delta / max(1, len(steps).bit_length())
    total = len(right)
    clusters = clusters_of(
        [(str(at), of) for at, of in enumerate(groups or [""] * total)]
    )
    sizes = np.bincount(clusters).astype(np.float64)
    scores = np.array(
        [np.nan if s is None else s for s in known_probability], np.float64
    )
    is_wrong = ~np.asarray(right, np.bool_)

    @cache
    def at(place: int) -> Threshold:
        score, coverage, wrong = steps[place]
        shown = round(coverage * total)
        bound = float(upper_bounds(round(wrong * shown), shown, level))
        if len(sizes) < total:
            is_shown = scores >= score
            shows, fails = (
                np.bincount(clusters, flags, len(sizes)).astype(np.float64)
                for flags in (is_shown, is_shown & is_wrong)
            )
            bound = max(bound, group_bound(shows, fails, sizes, level))
        return Threshold(score, coverage, wrong, bound)

    seen = max((n for n, step in enumerate(steps) if step[2] <= risk), default=None)
    # Computing the group bound at each of thousands of steps would take minutes.
    spread = np.linspace(0, len(steps) - 1, min(len(steps), _CURVE_POINTS))
    return Proposal(
        seen=None if seen is None else at(seen),
        guaranteed=_searched(at, len(steps), risk),
        curve=tuple(at(place) for place in spread.round().astype(int).tolist()),
    )


def _searched(
    at: Callable[[int], Threshold], count: int, risk: float
) -> Threshold | None:
    found = None
    low, high = 0, count - 1
    while low <= high:
        middle = (low + high) // 2
        if at(middle).bound <= risk:
            found, low = at(middle), middle + 1
        else:
            high = middle - 1
    return found


Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Watched:
    """A closed-book answer with the model's lowest confidence in any new word.

    `is_positive` marks the class to detect: answerable questions, or right answers.
    Questions of one `group` share their wording or topic; "" is a group of its own.
    """

    text: str
    weakest: float | None
    is_refused: bool
    is_positive: bool
    group: str = ""

    def looks(self, threshold: float) -> bool:
        doubted = self.weakest is None or self.weakest < threshold
        return self.is_refused or doubted

    @property
    def score(self) -> float | None:
        """The confidence to rank by.

        None, ranked last, for a refusal and for an answer without new words.
        """
        return None if self.is_refused else self.weakest


def _contains_a_reference(case: Case, said: str) -> bool:
    return contains_gold(said, case.references) == 1.0


def watch(
    writer: SegmentWriter,
    cases: Sequence[Case],
    *,
    steering: float,
    by_answer: bool,
    is_right: Callable[[Case, str], bool] = _contains_a_reference,
    on_progress: Progress | None = None,
) -> list[Watched]:
    """Let the model answer each question closed-book and record its confidence.

    Positives are the right answers if `by_answer`, otherwise the answerable questions.
    """
    found = []
    for number, case in enumerate(cases, start=1):
        draft = writer.write(case.question, (), (), steering=steering)
        words = new_words(
            draft.text,
            draft.tokens,
            draft.confidences,
            known=word_keys([case.question]),
        )
        values = [w.confidence for w in words if w.confidence is not None]
        right = is_right(case, draft.text)
        found.append(
            Watched(
                draft.text,
                min(values, default=None),
                not draft.text or is_refusal(draft.text),
                right if by_answer else bool(case.is_answerable),
                case.group,
            )
        )
        if on_progress:
            on_progress(number, len(cases))
    return found


def halves(watched: Sequence[Watched]) -> tuple[list[Watched], list[Watched]]:
    """Split into one half that chooses a threshold and one that measures it.

    Groups stay whole and in order, so that related questions are never in both halves.
    """
    clusters = clusters_of([(str(at), one.group) for at, one in enumerate(watched)])
    chooses, measures = list[Watched](), list[Watched]()
    for cluster in range(int(clusters.max(initial=-1)) + 1):
        part = [watched[at] for at in np.flatnonzero(clusters == cluster).tolist()]
        (chooses if 2 * len(chooses) < len(watched) - 1 else measures).extend(part)
    return chooses, measures


def best_threshold(watched: Sequence[Watched]) -> float:
    """Return the threshold with the best balanced accuracy.

    Candidates lie halfway between observed confidences; ties go to the lowest.
    """
    values = sorted({w.weakest for w in watched if w.weakest is not None})
    if not values:
        raise EvaluationDataError(
            "No confidence was measured to choose a threshold by. Give more questions."
        )
    # The lowest candidate doubts no answer, the highest doubts all of them.
    ends = [values[0] - 1.0, *values, values[-1] + 1.0]
    tried = [(low + high) / 2 for low, high in pairwise(ends)]
    return max(tried, key=lambda t: (balanced(watched, t), -t))


def balanced(watched: Sequence[Watched], threshold: float) -> float:
    """Return the mean accuracy of both classes, in [0, 1]; NaN if a class is empty."""
    rates = separated(watched, threshold)
    if not all(rate.total for rate in rates):
        return math.nan
    return sum(rate.count / rate.total for rate in rates) / len(rates)


def separated(watched: Sequence[Watched], threshold: float) -> tuple[Rate, Rate]:
    positive = [w for w in watched if w.is_positive]
    others = [w for w in watched if not w.is_positive]
    return (
        Rate(sum(not w.looks(threshold) for w in positive), len(positive)),
        Rate(sum(w.looks(threshold) for w in others), len(others)),
    )


Row = tuple[str, float, tuple[Rate, Rate], str]
"""Steering, threshold, positives passed and negatives stopped, AUROC as text."""


def self_knowledge_row(
    steering: float, chosen_by: Sequence[Watched], tested: Sequence[Watched]
) -> Row:
    threshold = best_threshold(chosen_by)
    value, interval = monitor_auroc(tested)
    said = "-" if value is None else f"{value:.2f}"
    if interval:
        said += f" ({interval[0]:.2f} to {interval[1]:.2f})"
    return f"{steering:g}", threshold, separated(tested, threshold), said


def monitor_auroc(watched: Sequence[Watched]) -> tuple[float | None, Interval | None]:
    """Return the AUROC of the lowest confidence, with its interval."""
    ranking = rank(
        [one.score for one in watched], [not one.is_positive for one in watched]
    )
    value = float(ranking.areas(np.ones((1, len(watched))))[1][0])
    (interval,) = bootstrap(
        [lambda weights: ranking.areas(weights)[1]],
        clusters_of([(str(at), one.group) for at, one in enumerate(watched)]),
    )
    return (None if math.isnan(value) else value), interval


def self_knowledge_table(rows: Sequence[Row], kinds: tuple[str, str]) -> TextTable:
    return TextTable(
        "Told by the monitor, Wilson 95 % intervals",
        ("steering", "threshold", f"{kinds[0]} let pass", f"{kinds[1]} not", "AUROC"),
        tuple(
            (name, f"{threshold:.2f}", _rate_text(passed), _rate_text(held), auroc)
            for name, threshold, (passed, held), auroc in rows
        ),
    )


def min_known_table(proposal: Proposal) -> TextTable:
    step = max(1, len(proposal.curve) // _CURVE_ROWS)
    rows: list[tuple[str, Threshold | None]] = [
        *(("", one) for one in proposal.curve[step - 1 :: step]),
        ("seen", proposal.seen),
        ("guaranteed", proposal.guaranteed),
    ]
    return TextTable(
        "Answering alone",
        ("", "min_known", "answers alone", "of these wrong", "at most"),
        tuple(
            # Unrounded: rounding down would admit answers that the bound did not count,
            # and rounding up would exclude the question that set the threshold.
            (
                name,
                repr(one.min_known),
                *map(percent, (one.coverage, one.risk, one.bound)),
            )
            for name, one in rows
            if one
        ),
    )


def _rate_text(rate: Rate) -> str:
    if rate.interval is None:
        return "-"
    low, high = (percent(bound) for bound in rate.interval)
    return f"{rate.count} of {rate.total} ({low} to {high})"
