"""Comparison of challenger and champion: a paired test on the same golden answers."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from probes.abstention.probe import AbstentionProbe
from probes.cards import CONFIDENCE_BY_KIND
from probes.exceptions import ProbeFileError
from probes.fitting import are_enough, require_labels
from probes.joint import JointProbe
from probes.language_model import WhiteBoxModel
from probes.models import Probe
from probes.services import load_probe
from probes.taps import Activations
from qa.evaluation.metrics.intervals import Statistic, clusters_of, differences
from qa.evaluation.metrics.selective import Scores, rank
from qa.exceptions import TrainingDataError
from qa.inference import grounded_form
from qa.inference.white_box import PassingForm

from .cross_fitting import joined
from .draft_activations import DraftActivations
from .labels import LabelledDraft
from .retraining import Comparison

# (answers, and of these at least so many right and wrong): with fewer, chance decides.
MIN_GOLDEN: Final = (60, 15)
MIN_IN_FOLDS: Final = (40, 8)

OnProgress = Callable[[int, int], None]


def compare_probes(
    model: WhiteBoxModel,
    golden: Sequence[LabelledDraft],
    *,
    champion: Probe | None,
    challenger: Probe,
    directory: Path,
    form: PassingForm = grounded_form,
    weights: Mapping[str, float] = MappingProxyType({}),
    folded: Mapping[str, float] = MappingProxyType({}),
    on_progress: OnProgress = lambda _done, _all: None,
) -> Comparison:
    """Compare two probes' AUROC on answers that neither was fitted on.

    Args:
        champion: If None, the challenger is compared with random guessing.
        directory: Where activations are cached.
        weights: By draft id, the number of answers that each stands for; 1 by default.
            AUROCs do not use them.
        folded: By draft id, out-of-fold confidences for answers that the challenger was
            fitted on.
    """
    minimum = MIN_IN_FOLDS if folded else MIN_GOLDEN
    require_labels([d.is_right for d in golden], "to compare probes on", *minimum)
    ordered = sorted(golden, key=lambda draft: draft.content)
    activations = DraftActivations(model, ordered, directory=directory, form=form)
    drafts = activations.drafts
    scores = _Scores(activations, on_progress)
    wrong = [not draft.is_right for draft in drafts]
    before = scores.by(champion) if champion else np.zeros(len(drafts))
    after = scores.by(challenger)
    own = [folded.get(draft.id) for draft in drafts]
    after = np.array([a if o is None else o for a, o in zip(after, own, strict=True)])
    statistics = (_auroc(before.tolist(), wrong), _auroc(after.tolist(), wrong))
    clusters = clusters_of([(draft.id, draft.group) for draft in drafts])
    (found,) = differences([statistics], clusters, within=True)
    low, high = found.interval or (None, None)
    return Comparison(
        golden=len(drafts),
        golden_right=len(drafts) - sum(wrong),
        champion_auroc=0.5 if found.first is None else found.first,
        challenger_auroc=0.5 if found.second is None else found.second,
        low=low,
        high=high,
        scores=[
            (float(first), float(second), draft.is_right, weights.get(draft.id, 1.0))
            for first, second, draft in zip(before, after, drafts, strict=True)
        ],
    )


def is_enough(golden: Sequence[LabelledDraft]) -> bool:
    """Return whether the golden answers alone suffice to compare probes."""
    return are_enough([draft.is_right for draft in golden], *MIN_GOLDEN)


def require_golden(golden: Sequence[LabelledDraft]) -> None:
    require_labels([d.is_right for d in golden], "to compare probes on", *MIN_GOLDEN)


class _Scores:
    def __init__(self, activations: DraftActivations, on_progress: OnProgress) -> None:
        self._activations, self._on_progress = activations, on_progress
        self._known: dict[str, NDArray[np.float64]] = {}

    def by(self, row: Probe) -> NDArray[np.float64]:
        """Return each draft's confidence; shape (drafts,)."""
        if row.fingerprint not in self._known:
            probe = load_probe(row.files, language_model=row.language_model)
            if isinstance(probe, JointProbe):
                found = self._by_signals(row, probe)
            elif isinstance(probe, AbstentionProbe):
                found = self._by_activations(row, probe)
            else:
                raise ProbeFileError(
                    f"{row} holds directions, which do not judge answers."
                )
            self._known[row.fingerprint] = found
        return self._known[row.fingerprint]

    def _by_activations(
        self, row: Probe, probe: AbstentionProbe
    ) -> NDArray[np.float64]:
        self._activations.read([probe.tap], on_progress=self._on_progress)
        rows: Sequence[Activations]
        if CONFIDENCE_BY_KIND[row.kind] == "early_confidence":
            rows = self._activations.of_prompts(probe.tap)
        else:
            first = 0 if probe.opens_with_prompt else 1
            rows = [
                whole[first:] if probe.closes_with_end else whole[first:-1]
                for whole in self._activations.of_sequences(probe.tap)
            ]
        return probe.confidences(rows)

    def _by_signals(self, row: Probe, probe: JointProbe) -> NDArray[np.float64]:
        inputs = {
            CONFIDENCE_BY_KIND[kind]: self.by(self._input(row, fingerprint))
            for kind, fingerprint in probe.inputs.items()
        }
        measured = [draft.signals for draft in self._activations.drafts]
        rows = joined(measured, inputs, np.arange(len(measured)))
        return np.array([probe.confidence(row) for row in rows])

    def _input(self, row: Probe, fingerprint: str) -> Probe:
        found = Probe.objects.filter(fingerprint=fingerprint).first()
        if found is None:
            raise TrainingDataError(
                f"{row} reads the confidence of the probe {fingerprint[:8]}, which is not "
                "in the registry; upload that one, or retire this one."
            )
        return found


def _auroc(scores: Scores, wrong: Sequence[bool]) -> Statistic:
    ranking = rank(scores, wrong)
    return lambda weights: ranking.areas(weights)[1]
