"""Preferences and rerankers as commands ask for them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from django.conf import settings

from kb.embedder import BUNDLED, bundled_directory
from probes.reranker.card import RerankerCard
from probes.reranker.fitting import RerankerSettings, Step, fit_reranker, save_reranker
from probes.reranker.preferences import Preference, digest_of, parted_by_query
from qa.exceptions import TrainingDataError
from qa.language_models.own_knowledge import OwnKnowledgeForm
from qa.own_knowledge.boundary import BoundaryProbe, probe_in_force
from qa.own_knowledge.selection import own_form

from .labelled_questions import Questions, read_questions
from .preferences import preferences_of, shifts_of

# Of the questions, where no held-out ones are given: every so-manieth stops the fit.
_HELD_OUT = 8


def make_preferences(
    wanted: Questions, *, margin: float
) -> tuple[int, list[Preference]]:
    """Return how many questions were asked, and the preferences that they gave.

    Raises:
        TrainingDataError: There are no questions, one can't be read, or no boundary
            probe is in force.
        UnavailableError: The language model is not there.
    """
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

    The preferences must be those of the boundary probe in force, whose fingerprint and
    language model its card names.

    Args:
        held_out: What stops the fit; if empty, every eighth question's preferences.
        base: "bundled", a directory, or a name that sentence-transformers knows.

    Raises:
        TooFewLabelsError: There are too few preferences.
        TrainingDataError: No boundary probe is in force.
        ModelLoadError: The base can't be loaded.
        UnavailableError: The language model is not there.
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
    """Return the directory or name that a reranker begins with."""
    return str(bundled_directory()) if name == BUNDLED else name


def form_and_probe() -> tuple[OwnKnowledgeForm, BoundaryProbe]:
    """Return the configured model's form and the boundary probe in force for it.

    Raises:
        TrainingDataError: None is in force.
        UnavailableError: The language model is not there.
    """
    form = own_form()
    held = probe_in_force(form)
    if held is None:
        raise TrainingDataError(
            "No boundary probe is in force for this language model. Train one: manage.py "
            "train_boundary_probe FILE ... --promote"
        )
    return form, held
