"""Counts and accuracies under any thresholds, played again on one run in shadow."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from qa.evaluation.judged import Judged
from qa.evaluation.metrics.intervals import bootstrap, clusters_of, mean
from qa.evaluation.metrics.rates import wilson_interval
from qa.pipeline.policy import RetrievalTiming, Scope
from qa.pipeline.replay import Played, replay

from .published import EUCLIDEAN_ALPHA

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
