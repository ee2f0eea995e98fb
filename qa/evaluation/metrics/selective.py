"""Answering selectively: how risk grows as a score lets more answers through.

A score ranks answers by trust, higher is better. Equal scores are one step: a threshold
lets all of them through or none, so that no result depends on the order of the rows. A
missing score (None) is the least trusted.

References:
    El-Yaniv and Wiener, "On the foundations of noise-free selective classification",
    JMLR 11 (2010): risk and coverage. Geifman, Uziel and El-Yaniv, "Bias-reduced
    uncertainty estimation for deep neural classifiers", ICLR 2019: AURC, E-AURC.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Scores = Sequence[float | None]
Numbers = NDArray[np.floating[Any]]
_TINY = 1e-30  # keeps 0 / 0 a 0


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Answers in the order of a score, the most trusted first.

    Its methods take weights of shape (draws, answers), in the answers' original order:
    how often each answer stands in each resampled set.

    Attributes:
        order: Positions of the answers, the most trusted first.
        starts: Where in that order each step begins.
        wrong: 1 where showing the answer would be wrong, else 0, in that order.
        scores: The score of each step; -inf is the missing one's.
    """

    order: NDArray[np.intp]
    starts: NDArray[np.intp]
    wrong: Numbers
    scores: Numbers

    def steps(self, weights: Numbers) -> tuple[Numbers, Numbers]:
        """Return how many answers each step adds, and how many wrong ones."""
        shown = np.take(weights, self.order, axis=1)
        bad = shown * self.wrong
        if len(self.starts) == len(self.order):
            return shown, bad
        return (
            np.add.reduceat(shown, self.starts, axis=1),
            np.add.reduceat(bad, self.starts, axis=1),
        )

    def areas(self, weights: Numbers) -> Numbers:
        """Return AURC and AUROC, of shape (2, draws); AUROC is NaN without both kinds."""
        shown, bad = self.steps(weights)
        so_far, bad_so_far = np.cumsum(shown, axis=1), np.cumsum(bad, axis=1)
        totals, wrongs = so_far[:, -1], bad_so_far[:, -1]
        # Right answers above each step, and half of those in it.
        above = so_far - bad_so_far - (shown - bad) / 2
        won = np.einsum("ds,ds->d", bad, above)
        pairs = wrongs * (totals - wrongs)
        risk = bad_so_far / np.maximum(so_far, _TINY)
        aurc = np.einsum("ds,ds->d", shown, risk) / totals
        auroc = np.where(pairs > 0, won / np.maximum(pairs, _TINY), np.nan)
        return np.stack([aurc, auroc])


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """The risk-coverage curve, one point a step, by growing coverage.

    Attributes:
        coverage: Share of all answers that is shown, in (0, 1]; the last is 1.
        risk: Share of the shown that is wrong, in [0, 1].
        threshold: The least score shown; None at the step of the missing ones.
    """

    coverage: tuple[float, ...]
    risk: tuple[float, ...]
    threshold: tuple[float | None, ...]

    def risk_at(self, coverage: float) -> float:
        """Return the risk of the first step that shows at least `coverage`.

        Raises:
            ValueError: `coverage` is outside (0, 1].
        """
        if not 0 < coverage <= 1:
            msg = f"{coverage} is no coverage in (0, 1]"
            raise ValueError(msg)
        reached = (
            risk
            for shown, risk in zip(self.coverage, self.risk, strict=True)
            if shown >= coverage - 1e-12
        )
        return next(reached)

    def coverage_at(self, risk: float) -> float:
        """Return the largest coverage whose risk is at most `risk`; 0 for none.

        It is what was seen on these answers; what holds for others is a certificate's.
        """
        pairs = zip(self.coverage, self.risk, strict=True)
        return max((shown for shown, wrong in pairs if wrong <= risk), default=0.0)


@dataclass(frozen=True, slots=True)
class PrecisionRecall:
    """The precision-recall curve of telling right answers, one point a step.

    Attributes:
        precision: Share of the shown that is right, in [0, 1].
        recall: Share of the right that is shown, in [0, 1].
    """

    precision: tuple[float, ...]
    recall: tuple[float, ...]

    @property
    def average_precision(self) -> float:
        """Precision, weighted by the recall that each step adds; in [0, 1]."""
        gained = np.diff(self.recall, prepend=0.0)
        return float((gained * np.asarray(self.precision)).sum())


def rank(scores: Scores, wrong: Sequence[bool]) -> Ranking:
    """Put answers in order by score.

    Args:
        scores: Higher is more trusted; None and NaN are the least.
        wrong: Whether showing each would be wrong.

    Raises:
        ValueError: There is nothing to rank, or the lengths differ.
    """
    if not len(scores) or len(scores) != len(wrong):
        msg = f"{len(scores)} scores and {len(wrong)} labels make no ranking"
        raise ValueError(msg)
    values = np.asarray(scores, dtype=np.float64)  # None becomes NaN
    values = np.where(np.isnan(values), -np.inf, values)
    order = np.argsort(-values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    bad = np.asarray(wrong, dtype=np.float32)[order]
    return Ranking(order, starts, bad, ordered[starts])


def risk_coverage(scores: Scores, wrong: Sequence[bool]) -> RiskCoverage:
    """Return the curve of showing the most trusted answers first."""
    ranking = rank(scores, wrong)
    shown, bad = ranking.steps(_once(ranking))
    so_far = np.cumsum(shown[0])
    risk = np.cumsum(bad[0]) / so_far
    return RiskCoverage(
        coverage=tuple((so_far / so_far[-1]).tolist()),
        risk=tuple(risk.tolist()),
        threshold=tuple(None if s == -np.inf else s for s in ranking.scores.tolist()),
    )


def aurc(scores: Scores, wrong: Sequence[bool]) -> float:
    """Return the area under the risk-coverage curve, in [0, 1]; lower is better.

    The mean over all answers of the risk at the step that shows it: with no two scores
    alike the empirical AURC of Geifman et al.; a score that tells nothing has the error
    rate.
    """
    ranking = rank(scores, wrong)
    return float(ranking.areas(_once(ranking))[0, 0])


def least_aurc(wrong: Sequence[bool]) -> float:
    """Return the AURC of the oracle, which shows every right answer first."""
    total, bad = len(wrong), sum(wrong)
    if not total:
        raise ValueError("no answers have no area")
    shown = np.arange(total - bad + 1, total + 1)
    return float(((shown - (total - bad)) / shown).sum() / total)


def excess_aurc(scores: Scores, wrong: Sequence[bool]) -> float:
    """Return E-AURC: AURC above the oracle's, in [0, 1); lower is better."""
    return max(0.0, aurc(scores, wrong) - least_aurc(wrong))


def auroc(scores: Scores, wrong: Sequence[bool]) -> float | None:
    """Return how well a score tells right from wrong, in [0, 1]; 0.5 is chance.

    The Mann-Whitney statistic: the share of (right, wrong) pairs in which the right one
    is trusted more, equal scores counting half. None where all are right or all wrong.
    """
    ranking = rank(scores, wrong)
    area = float(ranking.areas(_once(ranking))[1, 0])
    return None if np.isnan(area) else area


def precision_recall(scores: Scores, wrong: Sequence[bool]) -> PrecisionRecall | None:
    """Return precision and recall of showing; None where nothing is right."""
    ranking = rank(scores, wrong)
    shown, bad = ranking.steps(_once(ranking))
    good = np.cumsum(shown[0] - bad[0])
    if good[-1] == 0:
        return None
    precision = good / np.cumsum(shown[0])
    return PrecisionRecall(tuple(precision.tolist()), tuple((good / good[-1]).tolist()))


def _once(ranking: Ranking) -> Numbers:
    return np.ones((1, len(ranking.order)))
