"""Training the registry's reranker on labelled questions, and measuring it.

A note helps if an expert marked it, or if it raises the boundary probe's confidence,
provided that the probe can tell. Recall is measured on held-out questions: whether one
of the first notes contains a reference or is marked.
"""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Final

import numpy as np
from django.conf import settings

from accounts.ids import digest
from probes.cards import Json, ProbeKind
from probes.reranker.blend import Ranked, blend_files, fit_blend, recall_at
from probes.verifier.readings import Readings
from qa.evaluation.metrics.intervals import clusters_of, differences, mean
from qa.evaluation.metrics.text import contains_gold
from qa.exceptions import TrainingDataError
from qa.inference.verifier import VERIFIER, load_verifier, measured

from .held_out import figure
from .labelled_questions import LabelledQuestion
from .preferences import MARGIN, cannot_tell, form_and_probe, shifts_of
from .probe import OnProgress, Trained, new_card

PLACES: Final = 3
_TESTED: Final = 4  # one group in this many is held out for measuring
_MIN_TESTED: Final = 5


def train_blend(
    questions: Sequence[LabelledQuestion],
    *,
    on_progress: OnProgress = lambda _what, _done, _all: None,
) -> Trained:
    form, held = form_and_probe()
    if settings.VERIFIER == "none":
        raise TrainingDataError(
            "A reranker blends the verifier's scores, but NESCIO_VERIFIER is none. Set "
            "it to bundled, or to a directory that train verifier wrote."
        )
    verifier = load_verifier()
    # A single note cannot be reordered.
    asked = [one for one in questions if len(one.notes) > 1]
    why_not = cannot_tell(held)
    helping: list[Sequence[str]] = [one.marked for one in asked]
    if not why_not:
        shifts = shifts_of(
            form,
            held.probe,
            asked,
            on_progress=partial(on_progress, "Asking the probe"),
        )
        helping = [(*one.asked.marked, *one.helping(MARGIN)) for one in shifts]
    elif not any(helping):
        raise TrainingDataError(why_not)
    groups = clusters_of([(one.question, one.group) for one in asked])
    is_tested = groups % _TESTED == 0
    read = _read(asked, verifier, on_progress)
    fitted_on = [
        _ranked(one, numbers, helps)
        for one, numbers, helps, tested in zip(
            asked, read, helping, is_tested, strict=True
        )
        if not tested
    ]
    blend = fit_blend(fitted_on)
    tested = [
        _ranked(one, numbers, _answering(one))
        for one, numbers, is_in in zip(asked, read, is_tested, strict=True)
        if is_in
    ]
    after = recall_at(blend, tested, PLACES)
    metrics: dict[str, Json] = {
        "measured": f"recall among the first {PLACES} notes, on questions that it was "
        "not fitted on",
        "weights": dict(asdict(blend)),
        "by_marks_alone": bool(why_not),
        **_recall(after, tested),
    }
    card = new_card(
        ProbeKind.RERANKER,
        language_model=form.model.fingerprint,
        language_model_name=form.model.name,
        data_sha256=digest(*(repr(one) for one in asked)),
        sizes={"questions": len(fitted_on), "answers": len(after)},
        settings={VERIFIER: verifier.fingerprint},
        metrics=metrics,
        inputs={ProbeKind.BOUNDARY.value: held.fingerprint},
    )
    return Trained(blend_files(blend, card), metrics)


def _read(
    asked: Sequence[LabelledQuestion], verifier: Readings, on_progress: OnProgress
) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    for one in asked:
        on_progress("Reading notes", len(found), len(asked))
        found.append(measured(verifier, one.question, one.notes))
    return found


def _ranked(one: LabelledQuestion, numbers: np.ndarray, helps: Sequence[str]) -> Ranked:
    return Ranked(numbers, np.array([note in helps for note in one.notes]), one.group)


def _answering(one: LabelledQuestion) -> list[str]:
    return [
        note
        for note in one.notes
        if note in one.marked or contains_gold(note, one.references) == 1.0
    ]


def _recall(after: np.ndarray, tested: Sequence[Ranked]) -> dict[str, Json]:
    if len(after) < _MIN_TESTED:
        raise TrainingDataError(
            f"{len(after)} questions with a note that answers are left to measure recall "
            f"on, but {_MIN_TESTED} are needed. Give more labelled questions."
        )
    before = recall_at(None, tested, PLACES)
    names = [(str(at), one.group) for at, one in enumerate(tested) if one.helps.any()]
    everything = np.ones(len(after), np.bool_)
    (found,) = differences(
        [(mean(before, everything), mean(after, everything))], clusters_of(names)
    )
    return {
        "recall_before": float(before.mean()),
        "recall_after": float(after.mean()),
        "recall_difference": figure(found.value, found.interval),
    }
