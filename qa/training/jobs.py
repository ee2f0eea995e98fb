"""Background jobs: "probes.train" trains any kind, "qa.retrain" a probe on reviews."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser

from jobs.run import JobRun
from kb.documents.models import KnowledgeBase
from kb.entries.models import Entry
from probes.cards import ProbeKind, answer_kind
from probes.exceptions import ModelError
from probes.models import Probe
from qa.exceptions import EvaluationDataError, TrainingDataError
from qa.reviews.labels import Part
from qa.training import retraining as retrainings
from qa.training.labelled_questions import LabelledQuestion, question_of
from qa.training.labels import drafts_of_reviews, judged_since, weights_of_drafts
from qa.training.models import Retraining

if TYPE_CHECKING:
    from qa.training.request import TrainingRequest


OnProgress = Callable[[str, int, int], None]

METHOD_KINDS: Final = (ProbeKind.BOUNDARY, ProbeKind.RERANKER, ProbeKind.DIRECTIONS)
NOTES: Final = {ProbeKind.BOUNDARY: 3, ProbeKind.RERANKER: 8}
# The length in characters of a statement that a person might make in one sentence.
_MAX_STATEMENT: Final = 300
_MAX_STATEMENTS: Final = 1_000


def train_method(
    kind: ProbeKind,
    given: Mapping[str, Any],
    *,
    by: AbstractBaseUser | None,
    on_progress: OnProgress,
) -> tuple[Probe, int]:
    """Train a boundary probe, reranker or directions; return it and the example count.

    Questions come from a knowledge base's reviews, an uploaded file, or both. For
    directions, the true statements are a knowledge base's verified entries, and the
    questions serve to measure the monitor's threshold.
    """
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
        from qa.training.blend import train_blend  # noqa: PLC0415  # torch
        from qa.training.probe import keep  # noqa: PLC0415

        trained = train_blend(questions, on_progress=on_progress)
        return keep(trained.files, by=by, note=note, activate=promote), len(questions)
    from qa.training.boundary import SETTINGS, BoundaryTraining, train_on  # noqa: PLC0415

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
    from qa.training.labelled_questions import reviewed_questions  # noqa: PLC0415

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
    on_progress: OnProgress,
) -> tuple[Probe, int]:
    from probes.directions.sets import DirectionSettings  # noqa: PLC0415  # torch
    from probes.directions.statements import read_confident_statements  # noqa: PLC0415
    from qa.inference.policy_models import load_closed_book_form  # noqa: PLC0415
    from qa.training.directions import (  # noqa: PLC0415
        DirectionStatements,
        measured_threshold,
        train_directions,
    )
    from qa.training.probe import keep  # noqa: PLC0415

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


KIND: Final = "probes.train"
COMPARING: Final = "Reading golden answers"


def train_in_background(run: JobRun) -> dict[str, object]:
    """Train a probe, or a component of CBDR or CtrlA, and register it.

    The handler of jobs of `KIND`. For `METHOD_KINDS` see `train_method`; for probes of
    answers, the parameters are those that `request_of` reads. Activations are cached on
    disk for the next attempt; fits are repeated.
    """
    # Imports torch, which a process that only needs the constants must not load.
    from qa.training.request import carry_out, request_of  # noqa: PLC0415

    owner, on_progress = run.owner, run.reporter()
    kind = str(run.parameters.get("kind"))
    if kind in METHOD_KINDS:
        probe, count = train_method(
            ProbeKind(kind), run.parameters, by=owner, on_progress=on_progress
        )
        counts = {"learnt_from": count}
    else:
        outcome = carry_out(
            request_of(run.parameters), by=owner, on_progress=on_progress
        )
        probe = outcome.probe
        counts = {
            "answers": outcome.count,
            "right": outcome.right,
            "too_long": outcome.too_long,
            "known_by_adapter": outcome.known,
        }
    return {
        "probe": probe.pk,
        "fingerprint": probe.fingerprint,
        "state": probe.state,
        **counts,
        "metrics": dict(probe.metrics),
    }


def retrain_in_background(run: JobRun) -> dict[str, object]:
    """Train a probe of `kind` on reviews, and compare it with the active one.

    If that is not possible, for example with too few labels, the retraining is marked
    as failed, but not the job.
    """
    try:
        kind = answer_kind(str(run.parameters.get("kind")))
    except ValueError as error:
        raise TrainingDataError(
            f"The parameters do not describe a retraining: {error}."
        ) from error
    retraining = retrainings.begin(kind, job_id=run.job_id, by=run.owner)
    try:
        _carry_out(retraining, kind, run.reporter())
    except (EvaluationDataError, ModelError, TrainingDataError) as error:
        retrainings.fail(retraining, str(error))
    return {"retraining": retraining.pk, "state": retraining.state}


def _carry_out(
    retraining: Retraining, kind: ProbeKind, on_progress: OnProgress
) -> None:
    # These import torch too.
    from qa.inference.configured import load_language_model  # noqa: PLC0415
    from qa.inference.white_box import form_of  # noqa: PLC0415
    from qa.training.compare_probes import compare_probes, is_enough, require_golden  # noqa: PLC0415
    from qa.training.request import carry_out, model_to_train_on  # noqa: PLC0415

    language_model = load_language_model()
    model = model_to_train_on(language_model)
    golden, learnt = (
        [*drafts_of_reviews(part, language_model=language_model.fingerprint)]
        for part in (Part.GOLDEN, Part.TRAINING)
    )
    reads = language_model if kind is ProbeKind.JOINT else model
    champion = Probe.objects.active_for(reads.fingerprint).filter(kind=kind).first()
    is_gone_on_with = champion is not None and kind is not ProbeKind.JOINT
    if not is_gone_on_with:
        require_golden(golden)  # before minutes are spent on a fit
    outcome = carry_out(_request(kind, champion), on_progress=on_progress)
    folded: Mapping[str, float] = {}
    if champion is not None and is_gone_on_with and not is_enough(golden):
        # Too few golden answers to compare on: add those that the challenger was fitted
        # on, with out-of-fold confidences. Only those judged since the champion was
        # created, because it, and so the fits that start from it, may have seen the
        # earlier ones.
        folded = outcome.folded
        fitted_on = [draft for draft in learnt if draft.id in folded]
        golden += judged_since(fitted_on, champion.created_at)
    comparison = compare_probes(
        model,
        golden,
        champion=champion,
        challenger=outcome.probe,
        directory=settings.PLACES.activations,
        form=form_of(language_model),
        weights=weights_of_drafts(golden),
        folded=folded,
        on_progress=partial(on_progress, COMPARING),
    )
    retrainings.conclude(
        retraining,
        comparison,
        champion=champion,
        challenger=outcome.probe,
        labels=outcome.count,
        labels_right=outcome.right,
    )


def _request(kind: ProbeKind, champion: Probe | None) -> "TrainingRequest":
    from probes.abstention.files import settings_of  # noqa: PLC0415  # torch
    from probes.taps import Part as TapPart  # noqa: PLC0415
    from qa.training.request import TrainingRequest  # noqa: PLC0415

    note = "Retrained from reviews."
    if champion is None or kind is ProbeKind.JOINT:
        return TrainingRequest(kind=kind, reviews=True, note=note)
    fitted = settings_of(champion.parsed_card)
    return TrainingRequest(
        kind=kind,
        layer=champion.layer,
        part=TapPart(champion.part),
        network=fitted.kind,
        settings=fitted,
        begin_from=champion,
        reviews=True,
        note=note,
    )
