"""Selective answering: risk against coverage as a score admits more answers, and F1.

Higher scores are more trusted; a missing score (None) is the least trusted. Equal
scores form one step, so that no result depends on the order of the rows.

Risk and coverage: El-Yaniv and Wiener, JMLR 11 (2010). AURC, E-AURC: Geifman, Uziel and
El-Yaniv (ICLR 2019).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .intervals import Numbers, Statistic

Scores = Sequence[float | None]
_TINY = 1e-30  # makes 0 / 0 equal 0


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Answers in the order of a score, the most trusted first.

    `starts` is where each step begins; a missing score is -inf. Methods take weights of
    shape (draws, answers), in the answers' original order: how often each answer is in
    each resampled set.
    """

    order: NDArray[np.intp]
    starts: NDArray[np.intp]
    wrong: Numbers
    scores: Numbers

    def steps(self, weights: Numbers) -> tuple[Numbers, Numbers]:
        """Return how many answers each step adds, and how many of them are wrong."""
        shown = np.take(weights, self.order, axis=1)
        bad = shown * self.wrong
        if len(self.starts) == len(self.order):
            return shown, bad
        return (
            np.add.reduceat(shown, self.starts, axis=1),
            np.add.reduceat(bad, self.starts, axis=1),
        )

    def areas(self, weights: Numbers) -> Numbers:
        """Return AURC and AUROC, shape (2, draws); AUROC is NaN if a class is empty."""
        shown, bad = self.steps(weights)
        so_far, bad_so_far = np.cumsum(shown, axis=1), np.cumsum(bad, axis=1)
        totals, wrongs = so_far[:, -1], bad_so_far[:, -1]
        # Right answers in the steps above, and half of those in the step itself.
        above = so_far - bad_so_far - (shown - bad) / 2
        won = np.einsum("ds,ds->d", bad, above)
        pairs = wrongs * (totals - wrongs)
        risk = bad_so_far / np.maximum(so_far, _TINY)
        aurc = np.einsum("ds,ds->d", shown, risk) / totals
        auroc = np.where(pairs > 0, won / np.maximum(pairs, _TINY), np.nan)
        return np.stack([aurc, auroc])


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """The curve, one point per step, by increasing coverage; shares in [0, 1].

    `threshold` is the lowest score shown; None at the step of missing scores.
    """

    coverage: tuple[float, ...]
    risk: tuple[float, ...]
    threshold: tuple[float | None, ...]

    def risk_at(self, coverage: float) -> float:
        """Return the risk of the first step that shows `coverage`, in (0, 1]."""
        if not 0 < coverage <= 1:
            raise ValueError(f"{coverage} is not a coverage in (0, 1]")
        reached = (
            risk
            for shown, risk in zip(self.coverage, self.risk, strict=True)
            if shown >= coverage - 1e-12
        )
        return next(reached)

    def coverage_at(self, risk: float) -> float:
        """Return the largest coverage with at most this risk on these answers, or 0."""
        pairs = zip(self.coverage, self.risk, strict=True)
        return max((shown for shown, wrong in pairs if wrong <= risk), default=0.0)


def rank(scores: Scores, wrong: Sequence[bool]) -> Ranking:
    """Order answers by score; None and NaN are the least trusted."""
    if not len(scores) or len(scores) != len(wrong):
        raise ValueError(
            f"{len(scores)} scores and {len(wrong)} labels can't be ranked"
        )
    values = np.asarray(scores, dtype=np.float64)  # None becomes NaN
    values = np.where(np.isnan(values), -np.inf, values)
    order = np.argsort(-values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    bad = np.asarray(wrong, dtype=np.float32)[order]
    return Ranking(order, starts, bad, ordered[starts])


def risk_coverage(scores: Scores, wrong: Sequence[bool]) -> RiskCoverage:
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

    It is the mean, over all answers, of the risk at the step that shows the answer;
    without ties this is the empirical AURC of Geifman et al.
    """
    ranking = rank(scores, wrong)
    return float(ranking.areas(_once(ranking))[0, 0])


def least_aurc(wrong: Sequence[bool]) -> float:
    """Return the AURC of the oracle, which shows every right answer first."""
    total, bad = len(wrong), sum(wrong)
    if not total:
        raise ValueError("AURC needs at least one answer")
    shown = np.arange(total - bad + 1, total + 1)
    return float(((shown - (total - bad)) / shown).sum() / total)


def auroc(scores: Scores, wrong: Sequence[bool]) -> float | None:
    """Return how well a score separates right from wrong, in [0, 1]; 0.5 is chance.

    It is the Mann-Whitney statistic with ties counting half; None if all answers are
    right or all are wrong.
    """
    ranking = rank(scores, wrong)
    area = float(ranking.areas(_once(ranking))[1, 0])
    return None if np.isnan(area) else area


def average_precision(scores: Scores, wrong: Sequence[bool]) -> float | None:
    """Return precision weighted by each step's gain in recall; None if all wrong."""
    # Imported lazily: it loads scipy, which most processes don't need.
    from sklearn.metrics import average_precision_score  # noqa: PLC0415

    right = ~np.asarray(wrong, np.bool_)
    if not right.any():
        return None
    return float(average_precision_score(right, _finite(scores)))


def precision_recall(
    scores: Scores, wrong: Sequence[bool]
) -> tuple[list[float], list[float]] | None:
    """Return precision and recall by step; None if all answers are wrong."""
    from sklearn.metrics import precision_recall_curve  # noqa: PLC0415  # loads scipy

    right = ~np.asarray(wrong, np.bool_)
    if not right.any():
        return None
    precision, recall, _ = precision_recall_curve(right, _finite(scores))
    # Drop the curve's last point, which stands for showing nothing.
    return precision[-2::-1].tolist(), recall[-2::-1].tolist()


@dataclass(frozen=True, slots=True)
class TwoByTwo:
    """Counts of questions that should be answered (due) or refused (undue), by outcome.

    Precision, recall and F1 are those of refusing, in [0, 1], or None if undefined
    (Kirichenko et al., "AbstentionBench: reasoning LLMs fail on unanswerable
    questions", 2025).
    """

    due_answered: int
    due_refused: int
    undue_answered: int
    undue_refused: int

    @property
    def precision(self) -> float | None:
        refused = self.due_refused + self.undue_refused
        return self.undue_refused / refused if refused else None

    @property
    def recall(self) -> float | None:
        undue = self.undue_answered + self.undue_refused
        return self.undue_refused / undue if undue else None

    @property
    def f1(self) -> float | None:
        wrong = self.due_refused + self.undue_answered
        counted = 2 * self.undue_refused + wrong
        return 2 * self.undue_refused / counted if counted else None


def two_by_two(
    should_answer: Sequence[bool | None], answered: Sequence[bool]
) -> TwoByTwo:
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

    def f1(weights: Numbers) -> Numbers:
        hits, misses = weights @ right, weights @ mistaken
        counted = 2 * hits + misses
        return np.where(counted > 0, 2 * hits / np.maximum(counted, 1.0), np.nan)

    return f1


def _finite(scores: Scores) -> Numbers:
    values = np.asarray(scores, dtype=np.float64)
    missing = np.isnan(values)
    return np.where(missing, values[~missing].min(initial=0.0) - 1.0, values)


def _once(ranking: Ranking) -> Numbers:
    return np.ones((1, len(ranking.order)))
