"""Preferences of a language model: how each note moves its boundary probe.

Also their prompts, and rerankers fitted on them. Each question gives one prompt without
notes and one for each note: a probe fitted only on the former would score the latter at
random, and in service it scores both.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

from django.conf import settings

from accounts.ids import digest
from kb.embedding.embedder import BUNDLED, bundled_directory
from probes.abstention.probe import AbstentionProbe
from probes.models import Probe
from probes.reranker.fitting import RerankerSettings, Step, fit_reranker, save_reranker
from probes.reranker.preferences import Preference, digest_of, parted_by_query
from probes.reranker.scoring import RerankerCard
from probes.taps import Activations, Tap
from qa.evaluation.metrics.text import normalised
from qa.exceptions import TrainingDataError
from qa.inference.closed_book_form import ClosedBookForm
from qa.inference.known_by_probe import BoundaryProbe, active_boundary_probe
from qa.inference.policy_models import load_closed_book_form

from .held_out import as_text
from .labelled_questions import LabelledQuestion, Questions, read_questions

# Prompts of similar length that are processed in one batch.
_AT_ONCE: Final = 32
_MAX_TOKENS: Final = 24

OnProgress = Callable[[int, int], None]
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class AnsweredPrompt:
    prompt: LabelledQuestion
    answer: str
    is_right: bool

    @property
    def content(self) -> str:
        """The digest of prompt, answer, label and group, 64 hex digits."""
        prompt = self.prompt
        said = [prompt.question, prompt.notes, prompt.group, self.answer, self.is_right]
        return digest(json.dumps(said))


def prompts_of(
    questions: Iterable[LabelledQuestion], *, notes: int | None = None
) -> list[LabelledQuestion]:
    """Return for each question a prompt without notes and one for each note."""
    return [
        replace(row, notes=shown, group=row.group or normalised(row.question))
        for row in questions
        for shown in ((), *((note,) for note in row.notes[:notes]))
    ]


def answered(
    form: ClosedBookForm,
    prompts: Sequence[LabelledQuestion],
    *,
    on_progress: OnProgress = lambda _done, _all: None,
) -> list[AnsweredPrompt]:
    """Have the model answer each prompt greedily."""

    def write(rows: Sequence[tuple[int, ...]]) -> Sequence[str]:
        written = form.model.write_each(
            rows, form.prefix(), max_tokens=_MAX_TOKENS, stop=["\n"]
        )
        return [one.text.strip() for one in written]

    texts = _side_by_side(form, prompts, write, on_progress)
    return [
        AnsweredPrompt(prompt, text, prompt.is_answered_by(text))
        for prompt, text in zip(prompts, texts, strict=True)
    ]


def states_of(
    form: ClosedBookForm,
    prompts: Sequence[LabelledQuestion],
    tap: Tap,
    *,
    on_progress: OnProgress = lambda _done, _all: None,
) -> list[Activations]:
    """Return each prompt's last-token activations at the tap, float32 (1, width)."""

    def look(rows: Sequence[tuple[int, ...]]) -> Sequence[Activations]:
        looked = form.model.look_each(rows, form.prefix(), taps=[tap])
        return [states[tap][None] for states in looked]

    return _side_by_side(form, prompts, look, on_progress)


def _side_by_side(
    form: ClosedBookForm,
    prompts: Sequence[LabelledQuestion],
    work: Callable[[Sequence[tuple[int, ...]]], Sequence[_Made]],
    on_progress: OnProgress,
) -> list[_Made]:
    """Apply `work` to each prompt's tokens, in batches of similar length."""
    rows = [form.prompt_ids(one.question, one.notes) for one in prompts]
    order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
    found: dict[int, _Made] = {}
    for first in range(0, len(order), _AT_ONCE):
        batch = order[first : first + _AT_ONCE]
        made = work([rows[index] for index in batch])
        found.update(zip(batch, made, strict=True))
        on_progress(len(found), len(rows))
    return [found[index] for index in range(len(rows))]


MARGIN: Final = 0.005
WITH_NOTES: Final = "with_notes"
_CHANCE: Final = 0.5
MAX_NOTES: Final = 5


@dataclass(frozen=True, slots=True)
class Shifts:
    """Confidence in [0, 1] without notes, and each note's change of it, in [-1, 1]."""

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
    shifts: Sequence[Shifts], *, margin: float = MARGIN
) -> list[Preference]:
    """Return a preference for each question with both helpful and harmful notes.

    A note counts if it changes the confidence, in [0, 1], by more than `margin`; notes
    marked by an expert are the first of the helpful ones. `MAX_NOTES` of each are kept.
    """
    found = []
    for one in shifts:
        marked = one.asked.marked
        positives = [*marked, *(n for n in one.helping(margin) if n not in marked)]
        negatives = [note for note in one.harming(margin) if note not in marked]
        if positives and negatives:
            found.append(
                Preference(
                    one.asked.question,
                    tuple(positives[:MAX_NOTES]),
                    tuple(negatives[:MAX_NOTES]),
                )
            )
    return found


# Without held-out preferences, one question in this many is used for early stopping.
_HELD_OUT = 8


def make_preferences(
    wanted: Questions, *, margin: float
) -> tuple[int, list[Preference]]:
    form, held = form_and_probe()
    if reason := cannot_tell(held):
        raise TrainingDataError(reason)
    questions = [
        replace(row, notes=row.notes[: wanted.notes]) for row in read_questions(wanted)
    ]
    shifts = shifts_of(form, held.probe, questions)
    return len(questions), preferences_of(shifts, margin=margin)


def cannot_tell(held: BoundaryProbe) -> str:
    """Return why a boundary probe's shifts would be noise; "" if they are usable.

    The whole interval of its AUROC with notes must be above 0.5.
    """
    row = Probe.objects.light().filter(fingerprint=held.fingerprint).first()
    metrics = row.metrics if row else {}
    measured = metrics.get(WITH_NOTES)
    area = measured.get("auroc") if isinstance(measured, dict) else None
    figure = area if isinstance(area, dict) else {}
    # There is no interval if the AUROC is 1 in every resample.
    low = 1.0 if figure.get("value") == 1.0 else figure.get("low")
    if isinstance(low, float) and low > _CHANCE:
        return ""
    said = as_text(area) or "not measured"
    return (
        f"The boundary probe {held.fingerprint[:8]} can't tell which notes help: its "
        f"AUROC with notes is {said}, which does not exclude {_CHANCE}. Train it on more "
        "questions with notes, or mark evidence in reviews."
    )


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

    Args:
        preferences: Those of the active boundary probe, which the card names.
        held_out: Preferences for early stopping; if empty, those of every eighth
            question.
        base: "bundled", a directory, or a model name known to sentence-transformers.
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
