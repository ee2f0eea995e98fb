"""Training a boundary probe: whether the model answers rightly, before it writes.

The state of the prompt's last token at the middle block, by a network with one hidden
layer, on its logits, stopped early and calibrated. A question with and without notes is in
one group, and groups are never torn apart. What is reported is out of fold, for prompts
with and without notes apart.

References:
    CBDR, section 3.1; Ni et al. (2025), whose release applies softmax twice, so that its
    numbers are no probabilities.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
from django.contrib.auth.models import AbstractBaseUser

from probes.abstention import FitSettings, Kind, Labelled, fit, probe_files
from probes.cards import Json, ProbeCard, ProbeKind
from probes.fitting import require_labels
from probes.models import Probe
from probes.services import promote, register
from probes.taps import Tap
from qa.evaluation.metrics.intervals import clusters_of
from qa.evaluation.report.tables import TextTable, percent
from qa.inference.closed_book_form import FORM, OwnKnowledgeForm
from qa.inference.closed_book_models import own_form
from qa.inference.known_by_probe import OwnKnowledgeByProbe
from qa.inference.white_box import middle_of
from qa.training.cross_fitting import SequenceFit, folds_of, held_out, out_of_fold

from .boundary_prompts import AnsweredPrompt, answered, prompts_of, states_of
from .held_out import FIGURES, as_text, figures
from .labelled_questions import Questions, read_questions
from .preferences import form_and_probe, shifts_of
from .probe import FITTING, HELD_OUT, READING, OnProgress, Trained

# Of one position, so that nothing opens or closes it; plain cross-entropy on logits.
SETTINGS: Final = FitSettings(
    kind=Kind.MLP, opens_with_prompt=False, closes_with_end=False, huber_weight=0.0
)
WITH_NOTES: Final = "with_notes"
# (prompts, of these right and of these wrong): a small model is right about few.
_LEAST: Final = (400, 60)


@dataclass(frozen=True, slots=True)
class BoundaryTraining:
    """How a boundary probe is fitted.

    Attributes:
        layer: 0-based block; None is the middle one.
        folds: Of the cross-validation, at least 2.
    """

    layer: int | None = None
    settings: FitSettings = field(default_factory=lambda: SETTINGS)
    folds: int = 5


def tap_for(form: OwnKnowledgeForm, training: BoundaryTraining) -> Tap:
    """Return where the model is read."""
    if training.layer is not None:
        return Tap(training.layer)
    return middle_of(form.model.blocks)


def train_boundary(
    form: OwnKnowledgeForm,
    rows: Sequence[AnsweredPrompt],
    training: BoundaryTraining,
    *,
    on_progress: OnProgress = lambda _what, _done, _all: None,
) -> Trained:
    """Fit a boundary probe; the same rows and seed give the same one.

    Its metrics are of the prompts without notes, which decide whether to retrieve;
    those with notes stand below "with_notes" where there are any.
    """
    require_labels([row.is_right for row in rows], "to train on", *_LEAST)
    # In an order of their own: that of the sources changes nothing.
    rows = sorted(rows, key=lambda row: row.content)
    tap = tap_for(form, training)
    states = states_of(
        form,
        [row.prompt for row in rows],
        tap,
        on_progress=lambda done, total: on_progress(READING, done, total),
    )
    right = np.array([row.is_right for row in rows], np.bool_)
    clusters = clusters_of([(row.content, row.prompt.group) for row in rows])
    folds = folds_of(clusters, training.folds, training.settings.seed)
    told = _Told(on_progress, planned=2 * training.folds + 1)
    own, linear = (
        SequenceFit(
            activations=states,
            target=right,
            clusters=clusters,
            language_model=form.model.fingerprint,
            place=tap,
            settings=settings,
            on_fit=told.one_more,
        )
        for settings in (
            training.settings,
            replace(training.settings, kind=Kind.LINEAR),
        )
    )
    scores, baseline = out_of_fold(own, folds), out_of_fold(linear, folds)
    parted = held_out(np.arange(len(rows)), clusters, HELD_OUT, training.settings.seed)
    fitted_on, stopped_by = (
        [Labelled(states[row], bool(right[row])) for row in part.tolist()]
        for part in parted
    )
    probe = fit(
        fitted_on,
        stopped_by,
        language_model=form.model.fingerprint,
        tap=tap,
        settings=training.settings,
    )
    told.one_more()
    with_notes = np.array([bool(row.prompt.notes) for row in rows], np.bool_)

    def part_of(chosen: np.ndarray) -> dict[str, Json]:
        _, numbers = np.unique(clusters[chosen], return_inverse=True)
        return figures(
            scores[chosen],
            right[chosen],
            numbers.astype(np.intp),
            baselines={"linear": baseline[chosen].tolist()},
        )

    metrics: dict[str, Json] = {
        "measured": f"out of {training.folds} folds, split by group",
        **part_of(~with_notes),
    }
    if with_notes.any():
        metrics[WITH_NOTES] = part_of(with_notes)
    card = _card(form, rows, metrics, len(np.unique(clusters)))
    return Trained(probe_files(probe, training.settings, card), metrics, 0)


def _card(
    form: OwnKnowledgeForm,
    rows: Sequence[AnsweredPrompt],
    metrics: Mapping[str, Json],
    groups: int,
) -> ProbeCard:
    contents = "\n".join(sorted(row.content for row in rows))
    return ProbeCard(
        kind=ProbeKind.BOUNDARY,
        language_model="",
        language_model_name=form.model.name,
        form=FORM,
        layer=None,
        part="",
        temperature=1.0,
        data_sha256=hashlib.sha256(contents.encode()).hexdigest(),
        sizes={"answers": len(rows), "groups": groups},
        settings={},
        metrics=metrics,
    )


class _Told:
    """Counts fits and tells of them."""

    def __init__(self, tell: Callable[[str, int, int], None], *, planned: int) -> None:
        self._tell, self._planned, self._done = tell, planned, 0
        tell(FITTING, 0, planned)

    def one_more(self) -> None:
        self._done += 1
        self._tell(FITTING, self._done, self._planned)


# A boundary probe as it is asked for: from files of questions to the registry.


ANSWERING = "Answering"


@dataclass(frozen=True, slots=True)
class BoundaryRequest:
    """What is to be trained, on what.

    Attributes:
        promote: Whether the probe is put in force at once.
    """

    questions: Questions
    training: BoundaryTraining = field(default_factory=BoundaryTraining)
    promote: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class BoundaryOutcome:
    """What came of it: the prompts answered, and how many rightly."""

    probe: Probe
    trained: Trained
    prompts: int
    right: int


def carry_out(
    request: BoundaryRequest,
    *,
    by: AbstractBaseUser | None = None,
    on_progress: OnProgress = lambda _what, _done, _all: None,
) -> BoundaryOutcome:
    """Train a boundary probe and keep it as a candidate, or put it in force."""
    questions = read_questions(request.questions)
    form = own_form()
    rows = answered(
        form,
        prompts_of(questions, notes=request.questions.notes),
        on_progress=lambda done, total: on_progress(ANSWERING, done, total),
    )
    trained = train_boundary(form, rows, request.training, on_progress=on_progress)
    probe = register(trained.files, by=by, note=request.note)
    if request.promote and probe.state != Probe.State.ACTIVE:
        probe = promote(probe.pk, Probe.State.ACTIVE, by=by)
    return BoundaryOutcome(probe, trained, len(rows), sum(row.is_right for row in rows))


# What a boundary probe is worth, as a table.


def probe_table(metrics: Mapping[str, Json]) -> TextTable:
    """Return its figures on prompts without notes and with them apart."""
    rows = [_row("without notes", metrics)]
    noted = metrics.get(WITH_NOTES)
    if isinstance(noted, dict):
        rows.append(_row("with notes", noted))
    columns = ("prompts", "count", "right", *(name.upper() for name in FIGURES))
    return TextTable("Boundary probe", columns, tuple(rows))


def _row(name: str, metrics: Mapping[str, Json]) -> tuple[str, ...]:
    count, right = metrics.get("answers"), metrics.get("right")
    return (
        name,
        str(count),
        percent(right if isinstance(right, float) else None),
        *(as_text(metrics.get(figure)) for figure in FIGURES),
    )


# What the boundary probe in force says of labelled questions, and whether it is so.


@dataclass(frozen=True, slots=True)
class Judged:
    """Questions as the probe and the references judge them, in one order.

    Attributes:
        known_probability: In [0, 1].
        right: Whether the model's own answer is right.
        fingerprint: What `min_known` belongs to.
    """

    known_probability: Sequence[float]
    right: Sequence[bool]
    fingerprint: str


def judged_questions(
    files: Sequence[Path],
    *,
    on_progress: OnProgress = lambda _what, _done, _all: None,
) -> Judged:
    """Ask the model and the probe of every question, without notes."""
    questions = read_questions(Questions(files))
    form, held = form_and_probe()
    rows = answered(
        form,
        prompts_of(questions, notes=0),
        on_progress=lambda done, total: on_progress("Answering", done, total),
    )
    told = shifts_of(form, held.probe, [row.without_notes for row in questions])
    return Judged(
        [one.alone for one in told],
        [row.is_right for row in rows],
        OwnKnowledgeByProbe(form, held).fingerprint,
    )
