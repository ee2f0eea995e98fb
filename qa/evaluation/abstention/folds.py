"""Cross-fitting by article: every figure is of answers that no fit behind it saw.

What is right about an article can be learnt by heart, so an article's answers are all in
one fold. A score that is made of other fitted scores (the joint one) would be judged too
well if those had seen its test fold: they are fitted again without each pair of folds.

References:
    Stone, "Cross-validatory choice and assessment of statistical predictions", JRSS B
    36 (1974). Wolpert, "Stacked generalization", Neural Networks 5 (1992).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from qa.exceptions import EvaluationDataError

Rows = NDArray[np.intp]
Flags = NDArray[np.bool_]
Scores = NDArray[np.float64]
# Scores answers, named by their rows.
Scorer = Callable[[Rows], Scores]
# Fits on the answers of some rows.
Fit = Callable[[Rows], Scorer]


@dataclass(frozen=True, slots=True, eq=False)
class CrossFitted:
    """Scores of every answer by fits that did not see it.

    Attributes:
        own: By the fit without the answer's own fold, shape (answers,).
        apart: For each fold, the scores of the answers outside of it by fits that saw
            neither that fold nor the answer's own, shape (answers,); NaN inside of it.
    """

    own: Scores
    apart: Mapping[int, Scores]


def folds_of(clusters: Rows, count: int, seed: int) -> Rows:
    """Deal whole clusters out to folds of about the same size.

    Args:
        clusters: The number of each answer's cluster, from 0 on without a gap.
        count: How many folds, at least 2.
        seed: The same seed deals the same way.

    Returns:
        The fold of each answer, 0-based.

    Raises:
        EvaluationDataError: There are fewer clusters than folds.
    """
    sizes = np.bincount(clusters) if len(clusters) else np.zeros(0, dtype=np.intp)
    if not 2 <= count <= len(sizes):
        msg = (
            f"{len(sizes)} articles can't be dealt out to {count} folds: use runs over "
            "more articles, or between 2 and that many folds."
        )
        raise EvaluationDataError(msg)
    order = np.random.default_rng(seed).permutation(len(sizes))
    # The largest first: what comes last evens out the folds.
    order = order[np.argsort(-sizes[order], kind="stable")]
    fold, filled = np.zeros(len(sizes), dtype=np.intp), np.zeros(count, dtype=np.intp)
    for cluster in order:
        fold[cluster] = filled.argmin()
        filled[fold[cluster]] += sizes[cluster]
    return fold[clusters]


def held_out(rows: Rows, clusters: Rows, share: float, seed: int) -> tuple[Rows, Rows]:
    """Part rows in what is fitted on and what stops the fit, by whole clusters.

    Args:
        rows: Answers to be parted, of at least two clusters.
        clusters: The cluster of every answer there is.
        share: Least share of the rows that is held out, in (0, 1).
        seed: The same seed parts the same way.

    Raises:
        EvaluationDataError: All of them are of one cluster.
    """
    inside = clusters[rows]
    names = np.unique(inside)
    if len(names) < 2:
        msg = (
            "All answers to fit on are about one article, so none can be held out: use "
            "runs over more articles."
        )
        raise EvaluationDataError(msg)
    order = np.random.default_rng(seed).permutation(names)
    sizes = np.array([(inside == name).sum() for name in order])
    enough = int(np.searchsorted(np.cumsum(sizes), share * len(rows))) + 1
    chosen = np.isin(inside, order[: min(enough, len(names) - 1)])
    return rows[~chosen], rows[chosen]


def out_of_fold(fit: Fit, folds: Rows) -> Scores:
    """Score every answer by a fit on the other folds."""
    scores = np.full(len(folds), np.nan)
    for fold in np.unique(folds):
        test = np.flatnonzero(folds == fold)
        scores[test] = fit(np.flatnonzero(folds != fold))(test)
    return scores


def cross_fit(fit: Fit, folds: Rows) -> CrossFitted:
    """Score every answer by fits without its fold, and without each other fold too.

    Raises:
        EvaluationDataError: There are only two folds, without which nothing is left.
    """
    numbers = np.unique(folds).tolist()
    if len(numbers) < 3:
        msg = (
            f"{len(numbers)} folds leave nothing to fit on where two are left out, as a "
            "joint score needs it: use at least 3."
        )
        raise EvaluationDataError(msg)
    apart = {fold: np.full(len(folds), np.nan) for fold in numbers}
    for one, other in combinations(numbers, 2):
        scorer = fit(np.flatnonzero((folds != one) & (folds != other)))
        for test, without in ((one, other), (other, one)):
            rows = np.flatnonzero(folds == test)
            apart[without][rows] = scorer(rows)
    return CrossFitted(out_of_fold(fit, folds), apart)
