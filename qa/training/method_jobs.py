"""What CBDR and CtrlA need, trained by the job "probes.train": boundary, reranker, directions.

Questions come from a knowledge base's reviews, from an uploaded file, or both; true
statements are a knowledge base's verified entries, and the questions measure the
monitor's threshold.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from django.contrib.auth.models import AbstractBaseUser

from kb.documents.models import KnowledgeBase
from kb.entries.models import Entry
from probes.cards import ProbeKind
from probes.models import Probe
from qa.exceptions import TrainingDataError

from .labelled_questions import LabelledQuestion, question_of

METHOD_KINDS: Final = (ProbeKind.BOUNDARY, ProbeKind.RERANKER, ProbeKind.DIRECTIONS)
NOTES: Final = {ProbeKind.BOUNDARY: 3, ProbeKind.RERANKER: 8}
# What a person says in a sentence.
_MAX_STATEMENT: Final = 300
_MAX_STATEMENTS: Final = 1_000


def train_method(
    kind: ProbeKind,
    given: Mapping[str, Any],
    *,
    by: AbstractBaseUser | None,
    on_progress: Any,  # noqa: ANN401  # `qa.training.probe.OnProgress`, which pulls in torch
) -> tuple[Probe, int]:
    """Train as the job's parameters say; return what is kept and of how many it learnt."""
    note, promote = str(given.get("note", "")), given.get("promote") is True
    if kind is ProbeKind.DIRECTIONS:
        return _directions(
            given, note=note, promote=promote, by=by, on_progress=on_progress
        )
    questions = [
        replace(one, notes=one.notes[: NOTES[kind]]) for one in _questions(given)
    ]
    if not questions:
        raise TrainingDataError(
            "There is nothing to train on: no reviewed question has a right answer. "
            "Review more, or upload labelled questions."
        )
    if kind is ProbeKind.RERANKER:
        from .blend import train_blend  # noqa: PLC0415  # torch
        from .probe import keep  # noqa: PLC0415

        trained = train_blend(questions, on_progress=on_progress)
        return keep(trained.files, by=by, note=note, activate=promote), len(questions)
    from .boundary import SETTINGS, BoundaryTraining, train_on  # noqa: PLC0415

    outcome = train_on(
        questions,
        BoundaryTraining(
            layer=given.get("layer"),
            settings=replace(SETTINGS, seed=int(given.get("seed", 0))),
            folds=int(given.get("folds", 5)),
        ),
        notes=NOTES[kind],
        promote=promote,
        note=note,
        by=by,
        on_progress=on_progress,
    )
    return outcome.probe, outcome.count


def _questions(given: Mapping[str, Any]) -> list[LabelledQuestion]:
    from .reviewed_questions import reviewed_questions  # noqa: PLC0415

    rows = given.get("questions", [])
    found = [question_of(row) for row in rows] if isinstance(rows, list) else []
    if slug := given.get("knowledge_base"):
        found += reviewed_questions(_knowledge_base(slug))
    return found


def _directions(
    given: Mapping[str, Any],
    *,
    note: str,
    promote: bool,
    by: AbstractBaseUser | None,
    on_progress: Any,  # noqa: ANN401  # as above
) -> tuple[Probe, int]:
    from probes.directions.sets import DirectionSettings  # noqa: PLC0415  # torch
    from probes.directions.statements import read_confident_statements  # noqa: PLC0415
    from qa.inference.policy_models import load_closed_book_form  # noqa: PLC0415

    from .directions import DirectionStatements, train_directions  # noqa: PLC0415
    from .monitor import measured_threshold  # noqa: PLC0415
    from .probe import keep  # noqa: PLC0415

    base = _knowledge_base(given.get("knowledge_base"))
    texts = (
        Entry.objects.filter(knowledge_base=base, state=Entry.State.VERIFIED)
        .order_by("pk")
        .values_list("text", flat=True)
    )
    true = [text for text in texts.iterator() if len(text) <= _MAX_STATEMENT]
    confident, unconfident = read_confident_statements()
    model, questions = load_closed_book_form().model, _questions(given)
    trained = train_directions(
        model,
        DirectionStatements(true[:_MAX_STATEMENTS], confident, unconfident),
        DirectionSettings(
            pairs=int(given.get("pairs", 512)), seed=int(given.get("seed", 0))
        ),
        measure=lambda found: measured_threshold(model, found, questions, on_progress),
        on_progress=on_progress,
    )
    return keep(trained.files, by=by, note=note, activate=promote), len(true)


def _knowledge_base(slug: object) -> KnowledgeBase:
    found = KnowledgeBase.objects.filter(slug=slug).first()
    if found is None:
        raise TrainingDataError(f"There is no knowledge base {slug!r}.")
    return found
