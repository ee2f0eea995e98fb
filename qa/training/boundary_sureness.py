"""What the boundary probe in force says of labelled questions, and whether it is so."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from qa.own_knowledge.boundary import OwnKnowledgeByProbe

from .boundary_prompts import answered, prompts_of
from .labelled_questions import Questions, read_questions
from .preference_request import form_and_probe
from .preferences import shifts_of
from .probe import OnProgress


@dataclass(frozen=True, slots=True)
class Judged:
    """Questions as the probe and the references judge them, in one order.

    Attributes:
        sureness: In [0, 1].
        right: Whether the model's own answer is right.
        fingerprint: What `min_known` belongs to.
    """

    sureness: Sequence[float]
    right: Sequence[bool]
    fingerprint: str


def judged_questions(
    files: Sequence[Path],
    *,
    on_progress: OnProgress = lambda _what, _done, _all: None,
) -> Judged:
    """Ask the model and the probe of every question, without notes.

    Raises:
        TrainingDataError: There are no questions, one can't be read, or no boundary
            probe is in force.
        UnavailableError: The language model is not there.
    """
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
