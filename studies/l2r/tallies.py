"""The paper's figures, and ours under any thresholds, replayed on a run in shadow.

References:
    Cao, "Learn to Refuse: Making Large Language Models More Controllable and Reliable
    through Knowledge Scope Limitation and Refusal Mechanism" (arXiv:2311.01041),
    Tables 1 to 4. Accuracies are in per cent. Read them with care: in the release's
    file the right option comes first in every MC1 row, and its MC2 scoring pairs
    answers with another question's options once a question was refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from qa.evaluation.judging import Judged
from qa.evaluation.metrics.intervals import (
    Difference,
    Interval,
    bootstrap,
    differences,
    mean,
    wilson_interval,
)
from qa.pipeline.policy import Policy
from qa.pipeline.replay import Played, replay

# By suite name: (questions answered, accuracy in per cent).
Published = Mapping[str, tuple[int, float]]


def _table(
    suites: Sequence[str], rows: Mapping[str, Sequence[tuple[int, float]]]
) -> Mapping[str, Published]:
    return {
        label: dict(zip(suites, figures, strict=True))
        for label, figures in rows.items()
    }


MC1: Final = "truthfulqa-mc1"
MC2: Final = "truthfulqa-mc2"
COMMONSENSEQA: Final = "commonsenseqa"
MEDQA: Final = "medqa"
MEDQA_CORPUS: Final = "medqa-corpus"
WITHOUT_STEPS: Final = "without steps"

TABLE_1: Final = _table(
    (MC1, MC2),
    {
        "Llama-2-70b-chat": ((817, 31.2), (817, 50.1)),
        "gpt-3.5-turbo": ((817, 46.6), (817, 68.2)),
        "gpt-3.5-turbo, Wikipedia": ((817, 53.7), (817, 67.1)),
        "gpt-3.5-turbo, Wikipedia, soft refusal": ((530, 55.1), (573, 66.2)),
        "L2R, Llama-2-70b-chat": ((618, 47.1), (611, 56.9)),
        "L2R, gpt-3.5-turbo": ((654, 65.1), (655, 70.0)),
    },
)
TABLE_2: Final = _table(
    (COMMONSENSEQA, MEDQA, MEDQA_CORPUS),
    {
        "Llama-2-70b-chat": ((1221, 73.2), (1273, 41.6), (1273, 41.6)),
        "gpt-3.5-turbo": ((1221, 69.8), (1273, 51.2), (1273, 50.9)),
        "L2R, Llama-2-70b-chat": ((565, 73.6), (430, 43.3), (512, 43.6)),
        "L2R, gpt-3.5-turbo": ((933, 75.6), (451, 52.8), (776, 53.2)),
    },
)
TABLE_3: Final = _table(
    (MC1, MC2),
    {
        "L2R": ((654, 65.1), (655, 70.0)),
        WITHOUT_STEPS: ((661, 68.4), (668, 69.1)),
        "without soft refusal": ((668, 63.8), (668, 69.3)),
        "without hard refusal": ((778, 62.2), (784, 69.1)),
    },
)
# MC1 by the share of gold knowledge: L2R, and the same knowledge without refusal.
TABLE_4: Final[Mapping[float, tuple[tuple[int, float], tuple[int, float]]]] = {
    0.0: ((0, 0.0), (817, 46.6)),
    0.25: ((178, 93.3), (817, 64.7)),
    0.5: ((349, 90.5), (817, 73.2)),
    0.75: ((516, 93.4), (817, 79.6)),
    1.0: ((658, 93.2), (817, 84.5)),
}
# Percentage of the 159 refusals with all gold knowledge whose draft was wrong
# (appendix C).
REFUSALS_RIGHT: Final = 73.4
# The release compares it with a squared distance, whatever the paper calls it.
ALPHA_SQUARED: Final = 0.75
EUCLIDEAN_ALPHA: Final = ALPHA_SQUARED**0.5


# Counts and accuracies under any thresholds, replayed on a run in shadow.


# Learn to Refuse's two gates. Its bound of .75 on the squared distance equals a bound
# of the square root of .75 on the Euclidean distance, exactly so at confidence 1.
L2R = Policy(
    name="Learn to Refuse",
    alpha=EUCLIDEAN_ALPHA,
    verbatim_distance=0.0,
    min_verdict=0.5,
    support_check=False,
    sources_must_agree=False,
)
NO_HARD = replace(L2R, hard_refusal=False)
NO_SOFT = replace(L2R, soft_refusal=False)
NO_GATE = replace(L2R, hard_refusal=False, soft_refusal=False)


@dataclass(frozen=True, slots=True)
class Tally:
    """How many questions were answered, and how well.

    Attributes:
        asked: The number of questions.
        answered: How many of them were answered.
        accuracy: Over the answered ones, in [0, 1]: the share that is right, or with
            several right options the mean share of options labelled correctly. None if
            none was answered.
        interval: 95 %: Wilson's if every question is right or wrong, else bootstrapped
            over questions; None if undefined.
        refusals_right: The share of refused drafts that are wrong; None if there are
            none.
        refused_drafts: How many refused questions have a draft.
    """

    asked: int
    answered: int
    accuracy: float | None
    interval: Interval | None
    refusals_right: float | None = None
    refused_drafts: int = 0


def plain_tally(rows: Sequence[Judged]) -> Tally:
    """Return the tally of the model closed-book."""
    return _tally(len(rows), _values(rows, "plain_accuracy"))


def ungated_tally(rows: Sequence[Judged]) -> Tally:
    """Return the tally without refusal; closed-book where nothing was retrieved."""
    found = [row for row in rows if "accuracy" in row.measures]
    nothing = [row for row in rows if "accuracy" not in row.measures]
    values = _values(found, "accuracy") + _values(nothing, "plain_accuracy")
    return _tally(len(rows), values)


def tally(rows: Sequence[Judged], gates: Policy) -> Tally:
    """Return the tally under these gates, replayed on signals from shadow."""
    answered = [row for row in rows if _is_answered(row, gates)]
    ids = {row.id for row in answered}
    drafts = [
        row.is_correct
        for row in rows
        if row.id not in ids and row.is_correct is not None
    ]
    made = _tally(len(rows), _values(answered, "accuracy"))
    return replace(
        made,
        refusals_right=drafts.count(False) / len(drafts) if drafts else None,
        refused_drafts=len(drafts),
    )


def gained(rows: Sequence[Judged], gates: Policy) -> Difference:
    """Return the accuracy on answered questions minus that on all without refusal."""
    held = [
        row.measures.get("accuracy", row.measures.get("plain_accuracy", 0.0))
        for row in rows
    ]
    values, whole = np.asarray(held), np.ones(len(rows), np.bool_)
    answered = np.array([_is_answered(row, gates) for row in rows], np.bool_)
    (found,) = differences(
        [(mean(values, whole), mean(values, answered))], np.arange(len(rows))
    )
    return found


def alpha_sweep(
    rows: Sequence[Judged], alphas: Sequence[float], *, soft: bool
) -> list[tuple[float, Tally]]:
    """Return the tally at each Euclidean alpha; refusals never increase with alpha."""
    return [
        (alpha, tally(rows, replace(L2R, alpha=alpha, soft_refusal=soft)))
        for alpha in alphas
    ]


def _is_answered(row: Judged, gates: Policy) -> bool:
    return (
        "accuracy" in row.measures
        and replay(row.signals, gates).outcome is Played.ANSWERED
    )


def _values(rows: Sequence[Judged], measure: str) -> list[float]:
    return [row.measures[measure] for row in rows if measure in row.measures]


def _tally(asked: int, values: Sequence[float]) -> Tally:
    if not values:
        return Tally(asked, 0, None, None)
    accuracy = sum(values) / len(values)
    interval: Interval | None
    if set(values) <= {0.0, 1.0}:
        interval = wilson_interval(values.count(1.0), len(values))
    else:
        every = np.ones(len(values), dtype=bool)
        (interval,) = bootstrap(
            [mean(np.asarray(values), every)], np.arange(len(values))
        )
    return Tally(asked, len(values), accuracy, interval)
