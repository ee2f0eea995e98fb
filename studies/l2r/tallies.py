"""The figures that the paper prints, to stand beside ours.

References:
    Cao, "Learn to Refuse: Making Large Language Models More Controllable and Reliable
    through Knowledge Scope Limitation and Refusal Mechanism" (arXiv:2311.01041),
    Tables 1 to 4. Accuracies in per cent. They were made with the right option first
    in every MC1 row of the release's file, and its MC2 scoring pairs an answer with
    another question's options once something was refused; read them with that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from qa.evaluation.judging import Judged
from qa.evaluation.metrics.intervals import (
    bootstrap,
    clusters_of,
    mean,
    wilson_interval,
)
from qa.pipeline.policy import RetrievalTiming, Scope
from qa.pipeline.replay import Played, replay

# By suite's name: (questions answered, accuracy in per cent).
Published = Mapping[str, tuple[int, float]]

TABLE_1: Final[Mapping[str, Published]] = {
    "Llama-2-70b-chat": {"truthfulqa-mc1": (817, 31.2), "truthfulqa-mc2": (817, 50.1)},
    "gpt-3.5-turbo": {"truthfulqa-mc1": (817, 46.6), "truthfulqa-mc2": (817, 68.2)},
    "gpt-3.5-turbo, Wikipedia": {
        "truthfulqa-mc1": (817, 53.7),
        "truthfulqa-mc2": (817, 67.1),
    },
    "gpt-3.5-turbo, Wikipedia, soft refusal": {
        "truthfulqa-mc1": (530, 55.1),
        "truthfulqa-mc2": (573, 66.2),
    },
    "L2R, Llama-2-70b-chat": {
        "truthfulqa-mc1": (618, 47.1),
        "truthfulqa-mc2": (611, 56.9),
    },
    "L2R, gpt-3.5-turbo": {
        "truthfulqa-mc1": (654, 65.1),
        "truthfulqa-mc2": (655, 70.0),
    },
}
TABLE_2: Final[Mapping[str, Published]] = {
    "Llama-2-70b-chat": {
        "commonsenseqa": (1221, 73.2),
        "medqa": (1273, 41.6),
        "medqa-corpus": (1273, 41.6),
    },
    "gpt-3.5-turbo": {
        "commonsenseqa": (1221, 69.8),
        "medqa": (1273, 51.2),
        "medqa-corpus": (1273, 50.9),
    },
    "L2R, Llama-2-70b-chat": {
        "commonsenseqa": (565, 73.6),
        "medqa": (430, 43.3),
        "medqa-corpus": (512, 43.6),
    },
    "L2R, gpt-3.5-turbo": {
        "commonsenseqa": (933, 75.6),
        "medqa": (451, 52.8),
        "medqa-corpus": (776, 53.2),
    },
}
TABLE_3: Final[Mapping[str, Published]] = {
    "L2R": {"truthfulqa-mc1": (654, 65.1), "truthfulqa-mc2": (655, 70.0)},
    "without steps": {"truthfulqa-mc1": (661, 68.4), "truthfulqa-mc2": (668, 69.1)},
    "without soft refusal": {
        "truthfulqa-mc1": (668, 63.8),
        "truthfulqa-mc2": (668, 69.3),
    },
    "without hard refusal": {
        "truthfulqa-mc1": (778, 62.2),
        "truthfulqa-mc2": (784, 69.1),
    },
}
# MC1 with gold knowledge, by its share: L2R, and the same knowledge without refusal.
TABLE_4: Final[Mapping[float, tuple[tuple[int, float], tuple[int, float]]]] = {
    0.0: ((0, 0.0), (817, 46.6)),
    0.25: ((178, 93.3), (817, 64.7)),
    0.5: ((349, 90.5), (817, 73.2)),
    0.75: ((516, 93.4), (817, 79.6)),
    1.0: ((658, 93.2), (817, 84.5)),
}
# Of the 159 refusals with all gold knowledge, those whose draft was wrong (appendix C).
REFUSALS_RIGHT: Final = 73.4
# Held against a squared distance in the release, whatever the paper calls it.
ALPHA_SQUARED: Final = 0.75
EUCLIDEAN_ALPHA: Final = ALPHA_SQUARED**0.5


# Counts and accuracies under any thresholds, played again on one run in shadow.


Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Gates:
    """`replay.Thresholds`: Learn to Refuse's two gates.

    Attributes:
        alpha: Bound of the Euclidean distance over confidence; the release's .75 on the
            squared distance is its square root here, exactly so at confidence 1.
    """

    scope: str = Scope.KNOWLEDGE_BASE
    retrieval_timing: str = RetrievalTiming.ALWAYS
    min_known: float = 1.01
    alpha: float = EUCLIDEAN_ALPHA
    alpha_unverified: float = 2.0
    verbatim_distance: float = 0.0
    min_verdict: float = 0.5
    hard_refusal: bool = True
    soft_refusal: bool = True
    support_check: bool = False
    abstention: bool = False
    min_confidence: float = 0.0
    min_early_confidence: float = 0.0
    min_joint_confidence: float = 0.0
    answer_without_probe: bool = True
    sources_must_agree: bool = False


L2R = Gates()
NO_HARD = replace(L2R, hard_refusal=False)
NO_SOFT = replace(L2R, soft_refusal=False)
NO_GATE = replace(L2R, hard_refusal=False, soft_refusal=False)


@dataclass(frozen=True, slots=True)
class Tally:
    """How many questions were answered, and how well.

    Attributes:
        answered: How many of `asked` were answered.
        accuracy: Over the answered ones, in [0, 1]: the share that is right, or for
            several right options the mean share of options labelled rightly. None where
            none was answered.
        interval: 95 %: Wilson's for right or wrong, else bootstrapped over questions;
            None where it can't be told.
        refusals_right: Of those refused that have a draft, the share whose draft is
            wrong; None where there is none.
        refused_drafts: How many those are.
    """

    asked: int
    answered: int
    accuracy: float | None
    interval: Interval | None
    refusals_right: float | None = None
    refused_drafts: int = 0


def plain_tally(rows: Sequence[Judged]) -> Tally:
    """Return how the model does closed-book."""
    return _tally(len(rows), _pairs(rows, "plain_accuracy"))


def ungated_tally(rows: Sequence[Judged]) -> Tally:
    """Return how it does with whatever was found and no refusal: closed-book if nothing."""
    found = [row for row in rows if "accuracy" in row.measures]
    nothing = [row for row in rows if "accuracy" not in row.measures]
    pairs = _pairs(found, "accuracy") + _pairs(nothing, "plain_accuracy")
    return _tally(len(rows), pairs)


def tally(rows: Sequence[Judged], gates: Gates) -> Tally:
    """Return how it does under these gates, played again on signals from shadow."""
    answered = [row for row in rows if _is_answered(row, gates)]
    ids = {row.id for row in answered}
    drafts = [
        row.is_correct
        for row in rows
        if row.id not in ids and row.is_correct is not None
    ]
    made = _tally(len(rows), _pairs(answered, "accuracy"))
    return replace(
        made,
        refusals_right=drafts.count(False) / len(drafts) if drafts else None,
        refused_drafts=len(drafts),
    )


def alpha_sweep(
    rows: Sequence[Judged], alphas: Sequence[float], *, soft: bool
) -> list[tuple[float, Tally]]:
    """Return the tally at each Euclidean alpha; refusals can only fall as it grows."""
    return [
        (alpha, tally(rows, Gates(alpha=alpha, soft_refusal=soft))) for alpha in alphas
    ]


def _is_answered(row: Judged, gates: Gates) -> bool:
    return (
        "accuracy" in row.measures
        and replay(row.signals, gates).outcome is Played.ANSWERED
    )


def _pairs(rows: Sequence[Judged], measure: str) -> list[tuple[Judged, float]]:
    return [(row, row.measures[measure]) for row in rows if measure in row.measures]


def _tally(asked: int, pairs: Sequence[tuple[Judged, float]]) -> Tally:
    values = [value for _, value in pairs]
    if not values:
        return Tally(asked, 0, None, None)
    accuracy = sum(values) / len(values)
    make = _wilson if set(values) <= {0.0, 1.0} else _bootstrapped
    return Tally(asked, len(values), accuracy, make(pairs))


def _wilson(pairs: Sequence[tuple[Judged, float]]) -> Interval | None:
    return wilson_interval(sum(value == 1.0 for _, value in pairs), len(pairs))


def _bootstrapped(pairs: Sequence[tuple[Judged, float]]) -> Interval | None:

    clusters = clusters_of([(row.id, "") for row, _ in pairs])
    values = np.asarray([value for _, value in pairs])
    return bootstrap([mean(values, np.ones(len(pairs), dtype=bool))], clusters)[0]
