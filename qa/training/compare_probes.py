"""Challenger against champion: two probes on the same golden answers, in a paired test."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from probes.abstention import AbstentionProbe
from probes.exceptions import ProbeFileError
from probes.fitting import require_labels
from probes.joint import JointProbe
from probes.language_model import WhiteBoxModel
from probes.loading import load_probe
from probes.models import Probe
from probes.taps import Activations
from qa.evaluation.metrics.intervals import Interval, Numbers, Statistic, clusters_of
from qa.evaluation.metrics.paired import differences
from qa.evaluation.metrics.selective import Scores, rank
from qa.exceptions import TrainingDataError
from qa.inference.probe_runner import CONFIDENCE_OF

from .draft_activations import Insides
from .labels import LabelledDraft

# (answers, of these right and of these wrong): with fewer, chance decides.
LEAST_GOLDEN: Final = (60, 15)

OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Duel:
    """What a paired test of two probes came to.

    Attributes:
        answers: How many golden answers both scored.
        right: How many of them are right.
        champion: AUROC of the probe in force, in [0, 1]; that of a coin without one.
        challenger: AUROC of the new one.
        interval: 95 % interval of challenger minus champion, whole groups drawn; None
            where it is not defined.
    """

    answers: int
    right: int
    champion: float
    challenger: float
    interval: Interval | None

    @property
    def is_better(self) -> bool:
        """Whether the challenger is better, and not by chance."""
        return self.interval is not None and self.interval[0] > 0


def fight(
    model: WhiteBoxModel,
    golden: Sequence[LabelledDraft],
    *,
    champion: Probe | None,
    challenger: Probe,
    directory: Path,
    on_progress: OnProgress = lambda _done, _all: None,
) -> Duel:
    """Compare two probes' AUROC on answers that neither was fitted on.

    Args:
        model: Whose activations are read.
        golden: What is judged by.
        champion: The probe in force, if any is.
        challenger: The new one.
        directory: Where activations are kept.
        on_progress: Told how many answers are read, of how many.
    """
    require_golden(golden)
    ordered = sorted(golden, key=lambda draft: draft.content)
    insides = Insides(model, ordered, directory=directory)
    drafts = insides.drafts
    ask = _Asking(insides, on_progress)
    wrong = [not draft.is_right for draft in drafts]
    before = ask.of(champion) if champion else np.zeros(len(drafts))
    statistics = (
        _auroc(before.tolist(), wrong),
        _auroc(ask.of(challenger).tolist(), wrong),
    )
    clusters = clusters_of([(draft.id, draft.group) for draft in drafts])
    (found,) = differences([statistics], clusters, within=True)
    return Duel(
        answers=len(drafts),
        right=len(drafts) - sum(wrong),
        champion=0.5 if found.first is None else found.first,
        challenger=0.5 if found.second is None else found.second,
        interval=found.interval,
    )


def require_golden(golden: Sequence[LabelledDraft]) -> None:
    """Refuse golden answers by which two probes can't be told apart."""
    require_labels([d.is_right for d in golden], "to compare probes on", *LEAST_GOLDEN)


class _Asking:
    """Confidences of probes in the same drafts, each probe asked once."""

    def __init__(self, insides: Insides, on_progress: OnProgress) -> None:
        self._insides, self._tell = insides, on_progress
        self._known: dict[str, NDArray[np.float64]] = {}

    def of(self, row: Probe) -> NDArray[np.float64]:
        """Return each draft's confidence, shape (drafts,)."""
        if row.fingerprint not in self._known:
            probe = load_probe(row.files, language_model=row.language_model)
            if isinstance(probe, JointProbe):
                found = self._of_signals(row, probe)
            elif isinstance(probe, AbstentionProbe):
                found = self._of_activations(row, probe)
            else:
                raise ProbeFileError(f"{row} holds directions, which judge no answer.")
            self._known[row.fingerprint] = found
        return self._known[row.fingerprint]

    def _of_activations(
        self, row: Probe, probe: AbstentionProbe
    ) -> NDArray[np.float64]:
        self._insides.read([probe.tap], on_progress=self._tell)
        rows: Sequence[Activations]
        if CONFIDENCE_OF[row.kind] == "early_confidence":
            rows = self._insides.of_prompts(probe.tap)
        else:
            first = 0 if probe.opens_with_prompt else 1
            rows = [
                whole[first:] if probe.closes_with_end else whole[first:-1]
                for whole in self._insides.of_sequences(probe.tap)
            ]
        return probe.confidences(rows)

    def _of_signals(self, row: Probe, probe: JointProbe) -> NDArray[np.float64]:
        inputs = {
            CONFIDENCE_OF[kind]: self.of(self._input(row, fingerprint))
            for kind, fingerprint in probe.inputs.items()
        }
        return np.array(
            [
                probe.confidence(
                    {
                        **draft.signals,
                        **{name: float(each[place]) for name, each in inputs.items()},
                    }
                )
                for place, draft in enumerate(self._insides.drafts)
            ]
        )

    def _input(self, row: Probe, fingerprint: str) -> Probe:
        found = Probe.objects.filter(fingerprint=fingerprint).first()
        if found is None:
            raise TrainingDataError(
                f"{row} reads the confidence of the probe {fingerprint[:8]}, which is not "
                "kept here; upload that one, or retire this."
            )
        return found


def _auroc(scores: Scores, wrong: Sequence[bool]) -> Statistic:
    ranking = rank(scores, wrong)

    def auroc_of(weights: Numbers) -> Numbers:
        found: Numbers = ranking.areas(weights)[1]
        return found

    return auroc_of
