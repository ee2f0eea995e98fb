"""Cross-fitting by article: metrics use only answers unseen by the fits behind them.

All answers of an article are in one fold. For a score built on other fitted scores (the
joint one), those are refitted without each pair of folds.

Stone, JRSS B 36 (1974). Wolpert, "Stacked generalization" (1992).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from probes.abstention.fitting import FitSettings, fit
from probes.abstention.probe import AbstentionProbe, Labelled
from probes.joint import JointSettings, fit_joint
from probes.taps import Activations, Tap
from qa.exceptions import EvaluationDataError

Rows = NDArray[np.intp]
Flags = NDArray[np.bool_]
Scores = NDArray[np.float64]
# Scores the answers with these row numbers.
Scorer = Callable[[Rows], Scores]
# Fits on the answers with these row numbers.
Fit = Callable[[Rows], Scorer]


@dataclass(frozen=True, slots=True, eq=False)
class CrossFitted:
    """Scores of every answer by fits that did not see it; shape (answers,).

    Attributes:
        own: By the fit without the answer's own fold.
        apart: For each fold, the scores of answers outside it by fits that saw neither
            that fold nor the answer's own; NaN inside it.
    """

    own: Scores
    apart: Mapping[int, Scores]


def folds_of(clusters: Rows, count: int, seed: int) -> Rows:
    """Return the 0-based fold of each answer: whole clusters, folds of similar size.

    Args:
        clusters: The cluster of each answer, numbered from 0 without gaps.
        count: Number of folds; at least 2.
    """
    sizes = np.bincount(clusters) if len(clusters) else np.zeros(0, dtype=np.intp)
    if not 2 <= count <= len(sizes):
        raise EvaluationDataError(
            f"{len(sizes)} articles can't be split into {count} folds: use runs over "
            "more articles, or between 2 and that many folds."
        )
    order = np.random.default_rng(seed).permutation(len(sizes))
    # Largest first, so that the smaller ones even out the folds.
    order = order[np.argsort(-sizes[order], kind="stable")]
    fold, filled = np.zeros(len(sizes), dtype=np.intp), np.zeros(count, dtype=np.intp)
    for cluster in order:
        fold[cluster] = filled.argmin()
        filled[fold[cluster]] += sizes[cluster]
    return fold[clusters]


def held_out(rows: Rows, clusters: Rows, share: float, seed: int) -> tuple[Rows, Rows]:
    """Split rows into those to fit on and at least this share held out.

    Args:
        clusters: The cluster of every answer; clusters are not split.
        share: In (0, 1).
    """
    inside = clusters[rows]
    names = np.unique(inside)
    if len(names) < 2:
        raise EvaluationDataError(
            "All answers to fit on are about one article, so none can be held out: use "
            "runs over more articles."
        )
    order = np.random.default_rng(seed).permutation(names)
    sizes = np.array([(inside == name).sum() for name in order])
    enough = int(np.searchsorted(np.cumsum(sizes), share * len(rows))) + 1
    chosen = np.isin(inside, order[: min(enough, len(names) - 1)])
    return rows[~chosen], rows[chosen]


def out_of_fold(fit: Fit, folds: Rows) -> Scores:
    scores = np.full(len(folds), np.nan)
    for fold in np.unique(folds):
        test = np.flatnonzero(folds == fold)
        scores[test] = fit(np.flatnonzero(folds != fold))(test)
    return scores


def cross_fit(fit: Fit, folds: Rows) -> CrossFitted:
    numbers = np.unique(folds).tolist()
    if len(numbers) < 3:
        raise EvaluationDataError(
            f"{len(numbers)} folds leave nothing to fit on if two are left out, which "
            "a joint score requires: use at least 3."
        )
    apart = {fold: np.full(len(folds), np.nan) for fold in numbers}
    for one, other in combinations(numbers, 2):
        scorer = fit(np.flatnonzero((folds != one) & (folds != other)))
        for test, without in ((one, other), (other, one)):
            rows = np.flatnonzero(folds == test)
            apart[without][rows] = scorer(rows)
    return CrossFitted(out_of_fold(fit, folds), apart)


# The share of a fit's rows that is used for early stopping and calibration.
_HELD_OUT: Final = 0.15


@dataclass(frozen=True, slots=True, eq=False)
class SequenceFit:
    """Fits a probe to the activations of all answers, given in their order."""

    activations: Sequence[Activations]
    target: Flags
    clusters: Rows
    language_model: str
    place: Tap
    settings: FitSettings
    on_fit: Callable[[], None]
    begin_from: AbstentionProbe | None = None

    def probe(self, rows: Rows) -> AbstentionProbe:
        """Fit on these rows, some articles of which are held out for early stopping.

        The held-out articles also calibrate the probe.
        """
        training, stopping = held_out(
            rows, self.clusters, _HELD_OUT, self.settings.seed
        )
        probe = fit(
            self._labelled(training),
            self._labelled(stopping),
            language_model=self.language_model,
            tap=self.place,
            settings=self.settings,
            begin_from=self.begin_from,
        )
        self.on_fit()
        return probe

    def __call__(self, rows: Rows) -> Scorer:
        probe = self.probe(rows)

        def score(test: Rows) -> Scores:
            return probe.confidences([self.activations[row] for row in test])

        return score

    def _labelled(self, rows: Rows) -> list[Labelled]:
        return [Labelled(self.activations[row], bool(self.target[row])) for row in rows]


Signals = Mapping[str, float | None]
# Signals stored with answers. Confidences stored by an active probe are left out: it
# may have been fitted on these very answers.
MEASURED: Final = (
    "log_probability", "least_token_probability", "mean_entropy",
    "distance_over_confidence", "willingness", "verdict_probability",
    "answer_in_evidence", "question_in_evidence",
)  # fmt: skip
JOINT_SETTINGS: Final = JointSettings(
    signals=(*MEASURED, "answer_confidence", "early_confidence"),
    log_odds=frozenset(
        {"verdict_probability", "answer_confidence", "early_confidence"}
    ),
)


def joint_scores(
    measured: Sequence[Signals],
    right: Flags,
    folds: Rows,
    crossed: Mapping[str, CrossFitted],
    settings: JointSettings,
    *,
    language_model: str,
) -> Scores:
    """Return each answer's joint confidence, by a fit on the other folds.

    The confidences in those folds, by signal name, are from probes that did not see
    this answer's fold either.
    """
    scores = np.full(len(folds), np.nan)
    for fold in np.unique(folds).tolist():
        training, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        apart = {name: one.apart[fold] for name, one in crossed.items()}
        probe = fit_joint(
            joined(measured, apart, training),
            right[training].tolist(),
            language_model=language_model,
            settings=settings,
        )
        own = {name: one.own for name, one in crossed.items()}
        rows = joined(measured, own, test)
        scores[test] = [probe.confidence(row) for row in rows]
    return scores


def joined(
    measured: Sequence[Signals], confidences: Mapping[str, Scores], rows: Rows
) -> list[Signals]:
    return [
        {
            **measured[row],
            **{name: float(values[row]) for name, values in confidences.items()},
        }
        for row in rows.tolist()
    ]
