"""A boundary probe as it is asked for: from files of questions to the registry."""

from dataclasses import dataclass, field

from django.contrib.auth.models import AbstractBaseUser

from probes.models import Probe
from probes.services.registry import promote, register
from qa.own_knowledge.selection import own_form

from .boundary import BoundaryTraining, train_boundary
from .boundary_prompts import answered, prompts_of
from .labelled_questions import Questions, read_questions
from .probe import OnProgress, Trained

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
    """Train a boundary probe and keep it as a candidate, or put it in force.

    Raises:
        TrainingDataError: There is nothing to train on, or it can't be read.
        TooFewLabelsError: The model answers too few questions rightly, or too few wrongly.
        EvaluationDataError: There are fewer groups than folds.
        LayerError: The model has no such block.
        UnavailableError: The language model is not there.
    """
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
