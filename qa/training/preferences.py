"""Preferences of a language model (how each note moves its boundary probe) and rerankers.

The confidence shift of CBDR, section 3.2, equation 5, with a margin, since a shift
around 0 is noise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from django.conf import settings

from kb.embedding.embedder import BUNDLED, bundled_directory
from probes.abstention.probe import AbstentionProbe
from probes.reranker.fitting import RerankerSettings, Step, fit_reranker, save_reranker
from probes.reranker.preferences import Preference, digest_of, parted_by_query
from probes.reranker.scoring import RerankerCard
from qa.exceptions import TrainingDataError
from qa.inference.closed_book_form import ClosedBookForm
from qa.inference.known_by_probe import BoundaryProbe, active_boundary_probe
from qa.inference.policy_models import load_closed_book_form

from .boundary_prompts import prompts_of, states_of
from .labelled_questions import LabelledQuestion, Questions, read_questions

MARGIN: Final = 0.005
MAX_NOTES: Final = 5


@dataclass(frozen=True, slots=True)
class Shifts:
    """Confidence in [0, 1] without notes, and each note's shift of it, in [-1, 1]."""

    asked: LabelledQuestion
    alone: float
    shifts: tuple[float, ...]

    def helping(self, margin: float) -> list[str]:
        ranked = sorted(zip(self.shifts, self.asked.notes, strict=True), reverse=True)
        return [note for shift, note in ranked if shift > margin]

    def harming(self, margin: float) -> list[str]:
        ranked = sorted(zip(self.shifts, self.asked.notes, strict=True))
        return [note for shift, note in ranked if shift < -margin]


def shifts_of(
    form: ClosedBookForm,
    probe: AbstentionProbe,
    questions: Sequence[LabelledQuestion],
    *,
    on_progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[Shifts]:
    states = states_of(form, prompts_of(questions), probe.tap, on_progress=on_progress)
    values = iter(probe.confidences(states).tolist())
    return [
        Shifts(
            asked,
            alone := next(values),
            tuple(next(values) - alone for _ in asked.notes),
        )
        for asked in questions
    ]


def preferences_of(
    shifts: Sequence[Shifts], *, margin: float = MARGIN, most: int = MAX_NOTES
) -> list[Preference]:
    """Return a preference for each question that some note helps and some note harms.

    A note has to move the confidence, in [0, 1], by `margin`; `most` of each sort are
    kept.
    """
    found = []
    for one in shifts:
        positives, negatives = one.helping(margin), one.harming(margin)
        if positives and negatives:
            found.append(
                Preference(
                    one.asked.question,
                    tuple(positives[:most]),
                    tuple(negatives[:most]),
                )
            )
    return found


# Of the questions, where no held-out ones are given: every so-manieth stops the fit.
_HELD_OUT = 8


def make_preferences(
    wanted: Questions, *, margin: float
) -> tuple[int, list[Preference]]:
    form, held = form_and_probe()
    questions = [
        replace(row, notes=row.notes[: wanted.notes]) for row in read_questions(wanted)
    ]
    shifts = shifts_of(form, held.probe, questions)
    return len(questions), preferences_of(shifts, margin=margin)


def train_reranker(
    preferences: Sequence[Preference],
    held_out: Sequence[Preference],
    directory: Path,
    *,
    base: str,
    fitting: RerankerSettings,
    on_step: Callable[[Step], None] = lambda _step: None,
) -> RerankerCard:
    """Fit a reranker and write its files.

    Preferences must be of the active boundary probe, which its card names. `held_out`
    stops the fit; if empty, every eighth question's. `base` is "bundled", a directory,
    or a name that sentence-transformers knows.
    """
    form, held = form_and_probe()
    fitted_on, stopping = list(preferences), list(held_out)
    if not stopping:
        fitted_on, stopping = parted_by_query(preferences, _HELD_OUT)
    fitted = fit_reranker(
        base_of(base),
        fitted_on,
        stopping,
        fitting,
        device=settings.MODEL_DEVICE,
        on_step=on_step,
    )
    card = RerankerCard(
        base=Path(base).name,
        language_model=form.model.fingerprint,
        boundary_probe=held.fingerprint,
        data_sha256=digest_of([*fitted_on, *stopping]),
        sizes={"preferences": len(fitted_on), "held_out": len(stopping)},
        settings={},
        metrics={},
        max_tokens=fitting.max_tokens,
    )
    return save_reranker(directory, fitted, card)


def base_of(name: str) -> str:
    return str(bundled_directory()) if name == BUNDLED else name


def form_and_probe() -> tuple[ClosedBookForm, BoundaryProbe]:
    form = load_closed_book_form()
    held = active_boundary_probe(form)
    if held is None:
        raise TrainingDataError(
            "No boundary probe is active for this language model. Train one: manage.py "
            "train boundary_probe FILE ... --promote"
        )
    return form, held
