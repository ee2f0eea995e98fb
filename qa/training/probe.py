"""Training a probe: from labelled drafts to files with metrics.

Everything is split by group (an article), and metrics are out of fold; the probe itself
is fitted on all groups except those held out for early stopping and temperature.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from django.contrib.auth.models import AbstractBaseUser
from numpy.typing import NDArray

from probes.abstention.files import probe_files, settings_of
from probes.abstention.fitting import FitSettings
from probes.abstention.probe import AbstentionProbe, Kind
from probes.cards import (
    ANSWER_KINDS,
    CONFIDENCE_BY_KIND,
    Json,
    ProbeCard,
    ProbeFiles,
    ProbeKind,
)
from probes.fitting import require_labels
from probes.joint import JointSettings, fit_joint, joint_files
from probes.language_model import WhiteBoxModel
from probes.models import Probe
from probes.services import load_probe, promote, register
from probes.taps import Activations, Part, Tap
from qa.evaluation.metrics.intervals import clusters_of
from qa.evaluation.metrics.selective import Scores
from qa.exceptions import TrainingDataError
from qa.inference import grounded_form
from qa.inference.white_box import PassingForm
from qa.pipeline.gates import SCORES
from qa.training.cross_fitting import (
    JOINT_SETTINGS,
    CrossFitted,
    SequenceFit,
    cross_fit,
    folds_of,
    joined,
    joint_scores,
    out_of_fold,
)

from .draft_activations import DraftActivations
from .held_out import figures
from .labels import LabelledDraft, digest_of

# (answers, and of these at least so many right and wrong): folds and early stopping
# take their share.
_MIN_ANSWERS: Final = (400, 80)
# Fitting an existing probe further needs fewer: three quarters of 50, as the rest is
# golden.
_MIN_TO_GO_ON: Final = (30, 6)
BASELINES: Final = ("log_probability", "least_token_probability", "mean_entropy")

READING: Final = "Reading answers"
FITTING: Final = "Fitting probes"

OnProgress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Training:
    """The settings of a training.

    Attributes:
        inputs: The probes whose confidences a joint probe reads.
        begin_from: The files of a probe of the same kind, tap and network, which is
            fitted further; fewer answers suffice then.
    """

    kind: ProbeKind
    tap: Tap
    settings: FitSettings = field(default_factory=FitSettings)
    joint: JointSettings = JOINT_SETTINGS
    inputs: Sequence[ProbeFiles] = ()
    folds: int = 5
    begin_from: ProbeFiles | None = None


@dataclass(frozen=True, slots=True)
class Trained:
    """A probe's files and metrics.

    Attributes:
        too_long: Number of answers that exceeded the model's context.
        folded: The answers' out-of-fold confidences, by id.
    """

    files: ProbeFiles
    metrics: Mapping[str, Json]
    too_long: int = 0
    folded: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A trained probe in the registry, with counts of what it was fitted on.

    Attributes:
        too_long: Number of answers that exceeded the model's context.
        known: Number of answers left out because the model's adapter was fitted on
            their group and may know them by heart.
        folded: As in `Trained`.
    """

    probe: Probe
    count: int
    right: int
    too_long: int = 0
    known: int = 0
    folded: Mapping[str, float] = field(default_factory=dict)

    @property
    def metrics(self) -> Mapping[str, Any]:
        metrics: Mapping[str, Any] = self.probe.metrics
        return metrics


class FitCount:
    def __init__(self, on_progress: OnProgress) -> None:
        self._on_progress, self._planned, self._done = on_progress, 0, 0

    def plan(self, fits: int) -> None:
        self._planned = fits
        self._on_progress(FITTING, 0, fits)

    def add(self) -> None:
        self._done += 1
        self._on_progress(FITTING, self._done, self._planned)


def keep(
    files: ProbeFiles, *, by: AbstractBaseUser | None, note: str, activate: bool
) -> Probe:
    probe = register(files, by=by, note=note)
    if activate and probe.state != Probe.State.ACTIVE:
        probe = promote(probe.pk, Probe.State.ACTIVE, by=by)
    return probe


def new_card(kind: ProbeKind, **given: Any) -> ProbeCard:
    later = {"language_model": "", "form": "", "layer": None, "part": ""}
    return ProbeCard(
        kind=kind, **{**later, "temperature": 1.0, "settings": {}, **given}
    )


def train(
    model: WhiteBoxModel,
    drafts: Sequence[LabelledDraft],
    training: Training,
    *,
    language_model: str,
    directory: Path,
    form: PassingForm = grounded_form,
    on_progress: OnProgress = lambda _what, _done, _all: None,
) -> Trained:
    """Fit a probe on labelled drafts; the same drafts and seed give the same probe.

    Args:
        language_model: The fingerprint of the model that answers, to which a joint
            probe is bound, as it reads that model's signals. Other probes are bound to
            `model` and `form`.
        form: The prompt form in which drafts are read.
        directory: Where activations are cached.
    """
    minimum = _MIN_TO_GO_ON if training.begin_from else _MIN_ANSWERS
    require_labels([draft.is_right for draft in drafts], "to train on", *minimum)
    work = _Work(model, drafts, training, directory, form, on_progress)
    if training.kind is ProbeKind.JOINT:
        return work.joint(language_model)
    return work.of_activations()


class _Work:
    def __init__(
        self,
        model: WhiteBoxModel,
        drafts: Sequence[LabelledDraft],
        training: Training,
        directory: Path,
        form: PassingForm,
        on_progress: OnProgress,
    ) -> None:
        self._model, self._training, self._form = model, training, form
        self._on_progress, self._fits = on_progress, FitCount(on_progress)
        # Sort by content, so that the order of the sources does not matter.
        ordered = sorted(drafts, key=lambda draft: draft.content)
        self._activations = DraftActivations(
            model, ordered, directory=directory, form=form
        )
        drafts = self._activations.drafts
        self._right = np.array([draft.is_right for draft in drafts], np.bool_)
        self._clusters = clusters_of([(draft.id, draft.group) for draft in drafts])
        self._folds = folds_of(self._clusters, training.folds, training.settings.seed)

    def of_activations(self) -> Trained:
        training = self._training
        self._read([training.tap])
        sequence = self._fit_of(training.kind, training.tap, training.settings)
        rivals: dict[str, SequenceFit] = {}
        if training.settings.kind is not Kind.LINEAR and sequence.begin_from is None:
            linear = replace(training.settings, kind=Kind.LINEAR, huber_weight=0.0)
            rivals["linear"] = self._fit_of(training.kind, training.tap, linear)
        self._fits.plan((1 + len(rivals)) * training.folds + 1)
        scores = out_of_fold(sequence, self._folds)
        baselines = self._measured() | {
            name: out_of_fold(rival, self._folds).tolist()
            for name, rival in rivals.items()
        }
        probe = sequence.probe(np.arange(len(self._right)))
        metrics = self._metrics(scores, baselines)
        files = probe_files(
            probe, sequence.settings, self._card(metrics, form=self._form.FORM)
        )
        ids = (draft.id for draft in self._activations.drafts)
        folded = dict(zip(ids, scores.tolist(), strict=True))
        return Trained(files, metrics, self._activations.too_long, folded)

    def joint(self, language_model: str) -> Trained:
        training = self._training
        cards = {files.fingerprint: files.checked() for files in training.inputs}
        taps = {
            key: Tap(card.layer or 0, Part(card.part)) for key, card in cards.items()
        }
        self._read(sorted(set(taps.values())))
        folds = training.folds
        self._fits.plan(len(cards) * (folds + folds * (folds - 1) // 2))
        crossed: dict[str, CrossFitted] = {}
        for key, card in cards.items():
            made = self._fit_of(card.kind, taps[key], settings_of(card))
            crossed[CONFIDENCE_BY_KIND[card.kind]] = cross_fit(made, self._folds)
        absent = {CONFIDENCE_BY_KIND[kind] for kind in ANSWER_KINDS} - crossed.keys()
        settings = replace(
            training.joint,
            signals=tuple(n for n in training.joint.signals if n not in absent),
        )
        measured = [draft.signals for draft in self._activations.drafts]
        scores = joint_scores(
            measured,
            self._right,
            self._folds,
            crossed,
            settings,
            language_model=language_model,
        )
        own = {name: each.own for name, each in crossed.items()}
        probe = fit_joint(
            joined(measured, own, np.arange(len(measured))),
            self._right.tolist(),
            language_model=language_model,
            settings=settings,
            inputs={card.kind.value: key for key, card in cards.items()},
        )
        baselines = {name: each.tolist() for name, each in own.items()}
        metrics = self._metrics(scores, self._measured() | baselines)
        files = joint_files(probe, settings, self._card(metrics, form=""))
        return Trained(files, metrics, self._activations.too_long)

    def _fit_of(self, kind: ProbeKind, tap: Tap, settings: FitSettings) -> SequenceFit:
        activations: Sequence[Activations]
        if kind is ProbeKind.EARLY:
            settings = replace(settings, opens_with_prompt=False, closes_with_end=False)
            activations = self._activations.of_prompts(tap)
        else:
            whole = self._activations.of_sequences(tap)
            activations = [settings.cut_to_read(row) for row in whole]
        return SequenceFit(
            activations=activations,
            target=self._right,
            clusters=self._clusters,
            language_model=self._model.fingerprint,
            place=tap,
            settings=settings,
            on_fit=self._fits.add,
            begin_from=self._begin_from(kind, settings),
        )

    def _begin_from(
        self, kind: ProbeKind, settings: FitSettings
    ) -> AbstentionProbe | None:
        files = self._training.begin_from
        if files is None or kind is not self._training.kind:
            return None
        found = load_probe(files, language_model=self._model.fingerprint)
        if not isinstance(found, AbstentionProbe) or found.kind is not settings.kind:
            raise TrainingDataError(
                f"The probe {files.fingerprint[:8]} can't be fitted further: it is not "
                f"a {settings.kind} network. Train a new one."
            )
        return found

    def _read(self, taps: Sequence[Tap]) -> None:
        if taps:
            self._activations.read(
                taps, on_progress=partial(self._on_progress, READING)
            )

    def _measured(self) -> dict[str, Scores]:
        found: dict[str, Scores] = {}
        for name in BASELINES:
            values = [draft.signals.get(name) for draft in self._activations.drafts]
            if any(value is not None for value in values):
                orient = SCORES[name].oriented
                found[name] = [None if v is None else orient(v) for v in values]
        return found

    def _metrics(
        self, scores: NDArray[np.float64], baselines: Mapping[str, Scores]
    ) -> dict[str, Json]:
        found = figures(scores, self._right, self._clusters, baselines=baselines)
        measured = f"out of {self._training.folds} folds, split by group"
        if begun := self._training.begin_from:
            measured += (
                f", each from the probe {begun.fingerprint[:8]}, which may know some"
            )
        return {"measured": measured, **found}

    def _card(self, metrics: Mapping[str, Json], *, form: str) -> ProbeCard:
        drafts = self._activations.drafts
        adapter = " with its adapter" if self._model.adapter else ""
        return new_card(
            self._training.kind,
            language_model_name=f"{self._model.name}{adapter}",
            form=form,
            data_sha256=digest_of(drafts),
            sizes={"answers": len(drafts), "groups": len(np.unique(self._clusters))},
            metrics=metrics,
        )
