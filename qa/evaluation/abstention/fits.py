"""Probes as fits of a cross-validation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from probes.abstention import FitSettings, Labelled, fit
from qa.language_models.places import tap_of
from qa.pipeline.activations import Activations, Place

from .folds import Fit, Flags, Rows, Scorer, Scores, held_out

_HELD_OUT: Final = 0.15


@dataclass(frozen=True, slots=True, eq=False)
class SequenceFit:
    """Fits a probe to sequences of activations.

    Attributes:
        activations: Of every answer, in their order.
        target: What the probe is to tell, of every answer.
        clusters: The article of every answer.
        language_model: Fingerprint of the model that they were read from.
        on_fit: Told after each fit.
    """

    activations: Sequence[Activations]
    target: Flags
    clusters: Rows
    language_model: str
    place: Place
    settings: FitSettings
    on_fit: Callable[[], None]

    def __call__(self, rows: Rows) -> Scorer:
        """Fit on these rows; some of their articles stop the fit and calibrate it.

        Raises:
            TooFewLabelsError: There are too few answers, or nearly all are alike.
            EvaluationDataError: They are all about one article.
        """
        training, stopping = held_out(
            rows, self.clusters, _HELD_OUT, self.settings.seed
        )
        probe = fit(
            self._labelled(training),
            self._labelled(stopping),
            language_model=self.language_model,
            tap=tap_of(self.place),
            settings=self.settings,
        )
        self.on_fit()

        def score(test: Rows) -> Scores:
            return probe.confidences([self.activations[row] for row in test])

        return score

    def _labelled(self, rows: Rows) -> list[Labelled]:
        return [Labelled(self.activations[row], bool(self.target[row])) for row in rows]


def on_some(fit_on: Fit, count: int, seed: int) -> Fit:
    """Return a fit that is given only `count` of its rows, drawn from all articles.

    The rows of a smaller count are among those of a larger one.
    """

    def fit_some(rows: Rows) -> Scorer:
        drawn = np.random.default_rng(seed).permutation(rows)[:count]
        return fit_on(np.sort(drawn))

    return fit_some
