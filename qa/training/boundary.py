"""Training a boundary probe, which predicts whether the model answers correctly.

It reads the last token of the prompt at the middle block (CBDR, section 3.1; Ni et al.
2025, whose release applies softmax twice, so that its outputs are not probabilities). A
question with and without notes forms one group, which is never split; metrics are out
of fold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from django.contrib.auth.models import AbstractBaseUser

from accounts.ids import digest
from probes.abstention.files import probe_files
from probes.abstention.fitting import FitSettings
from probes.abstention.probe import Kind
from probes.cards import Json, ProbeKind
from probes.fitting import require_labels
from probes.taps import Tap
from qa.evaluation.metrics.intervals import clusters_of
from qa.evaluation.report.tables import TextTable, percent
from qa.inference.closed_book_form import FORM, ClosedBookForm
from qa.inference.known_by_probe import SelfKnowledgeByProbe
from qa.inference.policy_models import load_closed_book_form
from qa.inference.white_box import middle_tap
from qa.training.cross_fitting import SequenceFit, folds_of, out_of_fold

from .held_out import FIGURES, as_text, figures
from .labelled_questions import LabelledQuestion, Questions, read_questions
from .preferences import (
    WITH_NOTES,
    AnsweredPrompt,
    answered,
    form_and_probe,
    prompts_of,
    shifts_of,
    states_of,
)
from .probe import READING, FitCount, OnProgress, Outcome, Trained, keep, new_card

# There is only one position, so nothing opens or closes it; plain cross-entropy on
# logits.
SETTINGS: Final = FitSettings(
    kind=Kind.MLP, opens_with_prompt=False, closes_with_end=False, huber_weight=0.0
)
ANSWERING: Final = "Answering"
# (prompts, and of these at least so many right and wrong): a small model knows few.
_MIN_PROMPTS: Final = (400, 60)


@dataclass(frozen=True, slots=True)
class BoundaryTraining:
    """Settings of a boundary probe's training.

    Attributes:
        layer: The 0-based block; None for the middle one.
        folds: Number of folds; at least 2.
    """

    layer: int | None = None
    settings: FitSettings = field(default_factory=lambda: SETTINGS)
    folds: int = 5


def tap_for(form: ClosedBookForm, training: BoundaryTraining) -> Tap:
    if training.layer is not None:
        return Tap(training.layer)
    return middle_tap(form.model.blocks)


def train_boundary(
    form: ClosedBookForm,
    rows: Sequence[AnsweredPrompt],
    training: BoundaryTraining,
    *,
    on_progress: OnProgress = lambda _what, _done, _all: None,
) -> Trained:
    """Fit a boundary probe; the same rows and seed give the same probe.

    Its main metrics are of prompts without notes, which decide whether to retrieve;
    those of prompts with notes, if any, are under "with_notes".
    """
    require_labels([row.is_right for row in rows], "to train on", *_MIN_PROMPTS)
    # Sort by content, so that the order of the sources does not matter.
    rows = sorted(rows, key=lambda row: row.content)
    tap = tap_for(form, training)
    prompts = [row.prompt for row in rows]
    states = states_of(form, prompts, tap, on_progress=partial(on_progress, READING))
    right = np.array([row.is_right for row in rows], np.bool_)
    clusters = clusters_of([(row.content, row.prompt.group) for row in rows])
    folds = folds_of(clusters, training.folds, training.settings.seed)
    count = FitCount(on_progress)
    count.plan(2 * training.folds + 1)
    own, linear = (
        SequenceFit(
            activations=states,
            target=right,
            clusters=clusters,
            language_model=form.model.fingerprint,
            place=tap,
            settings=settings,
            on_fit=count.add,
        )
        for settings in (
            training.settings,
            replace(training.settings, kind=Kind.LINEAR),
        )
    )
    scores, baseline = out_of_fold(own, folds), out_of_fold(linear, folds)
    probe = own.probe(np.arange(len(rows)))
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
    card = new_card(
        ProbeKind.BOUNDARY,
        language_model_name=form.model.name,
        form=FORM,
        data_sha256=digest(*(row.content for row in rows)),
        sizes={"answers": len(rows), "groups": len(np.unique(clusters))},
        metrics=metrics,
    )
    return Trained(probe_files(probe, training.settings, card), metrics)


def train_on(
    questions: Sequence[LabelledQuestion],
    training: BoundaryTraining,
    *,
    notes: int,
    promote: bool,
    note: str,
    by: AbstractBaseUser | None = None,
    on_progress: OnProgress = lambda _what, _done, _all: None,
) -> Outcome:
    """Train on the model's answers to each question, without notes and with each note.

    Args:
        notes: The most notes used per question.
    """
    form = load_closed_book_form()
    prompts = prompts_of(questions, notes=notes)
    rows = answered(form, prompts, on_progress=partial(on_progress, ANSWERING))
    trained = train_boundary(form, rows, training, on_progress=on_progress)
    probe = keep(trained.files, by=by, note=note, activate=promote)
    return Outcome(probe, len(rows), sum(row.is_right for row in rows))


def probe_table(metrics: Mapping[str, Json]) -> TextTable:
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


def judge_questions(
    files: Sequence[Path], *, on_progress: OnProgress = lambda _what, _done, _all: None
) -> tuple[list[float], list[bool], list[str], str]:
    """Ask the model and the active boundary probe about questions, without notes.

    Returns: For each question the probability in [0, 1] that the model knows the
    answer, whether its answer is right, and its group; and the fingerprint that a
    `min_known` calibrated on these belongs to.
    """
    questions = read_questions(Questions(files))
    form, held = form_and_probe()
    prompts = prompts_of(questions, notes=0)
    rows = answered(form, prompts, on_progress=partial(on_progress, ANSWERING))
    shifts = shifts_of(form, held.probe, [row.without_notes for row in questions])
    return (
        [one.alone for one in shifts],
        [row.is_right for row in rows],
        [prompt.group for prompt in prompts],
        SelfKnowledgeByProbe(form, held).fingerprint,
    )
