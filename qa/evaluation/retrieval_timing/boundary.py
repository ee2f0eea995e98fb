"""A boundary probe for CBDR, fitted in the run on questions that nothing is tested on."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from probes.abstention import AbstentionProbe
from probes.cards import ProbeFiles
from probes.loading import load_probe
from qa.exceptions import EvaluationDataError
from qa.language_models.own_knowledge import OwnKnowledgeForm
from qa.own_knowledge.boundary import BoundaryProbe
from qa.training.boundary import BoundaryTraining, train_boundary
from qa.training.boundary_prompts import AnsweredPrompt, BoundaryPrompt

from .asking import OnProgress
from .questions import Asked
from .record import Row

_WITH_NOTES_EACH: Final = 8


def with_notes_too(questions: Sequence[Asked]) -> list[Asked]:
    """Return those that a probe is shown with notes as well: one in eight."""
    return list(questions[::_WITH_NOTES_EACH])


def prompts_of(
    questions: Sequence[Asked], alone: Mapping[str, Row], with_notes: Mapping[str, Row]
) -> list[AnsweredPrompt]:
    """Return what the model answered, without notes and with them where it had some."""
    rows = []
    for one in questions:
        for found in (alone, with_notes):
            if one.case.id in found:
                row = found[one.case.id]
                answer, notes = row["answer"], tuple(row.get("notes", ()))
                case = one.case
                prompt = BoundaryPrompt(case.question, notes, case.references, case.id)
                rows.append(AnsweredPrompt(prompt, answer, one.is_right(answer)))
    return rows


def taught_probe(
    form: OwnKnowledgeForm,
    rows: Sequence[AnsweredPrompt],
    directory: Path,
    *,
    on_progress: OnProgress,
) -> BoundaryProbe:
    """Return a boundary probe fitted on these rows.

    Fitted once: its files are kept below `directory` under a digest of the rows.

    Raises:
        TooFewLabelsError: There are too few rows, or nearly all are right or wrong.
    """
    said = "\n".join([form.fingerprint, *sorted(row.content for row in rows)])
    place = directory / f"boundary-{hashlib.sha256(said.encode()).hexdigest()[:12]}"
    if place.is_dir():
        files = ProbeFiles.read(place)
    else:
        training = BoundaryTraining()
        files = train_boundary(form, rows, training, on_progress=on_progress).files
        files.write(place)
    probe = load_probe(files, language_model=form.model.fingerprint)
    if not isinstance(probe, AbstentionProbe):
        raise EvaluationDataError(f"{place} holds no boundary probe; remove it.")
    return BoundaryProbe(files.fingerprint, probe)
