"""Keeping past questions in step with what experts say of their answers."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Case, F, IntegerField, Max, Min, Q, QuerySet, Value, When
from django.db.models.functions import Cast

from jobs.run import JobRun
from kb.embedder import embedder_of
from kb.embedding import active_model
from kb.models import EmbeddingModel
from qa.models import Answer, PastQuestion, Review
from qa.pipeline.replay import flat

from .past_knowledge import find_out_what_is_known

KIND = "qa.keep_past_questions"
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class _Label:
    """What all reviews of one answer say, and when the last one said it."""

    answer_id: UUID
    can_be_answered: bool
    at: datetime


def keep_past_questions(run: JobRun) -> dict[str, object]:
    """Bring past questions in step with the reviews; handler of `KIND`.

    What is labelled no more goes first; then, batch by batch in the order of the answers'
    ids, comes what is new or changed; last, what the model knows of it by itself. A run
    that is killed goes on where it was.
    """
    gone, kept = int(run.cursor.get("gone", 0)), int(run.cursor.get("kept", 0))
    place: str | None = run.cursor.get("place")
    if place is None:
        with run.step() as step:
            stale = PastQuestion.objects.exclude(
                answer__in=_labels().values("answer_id")
            )
            gone, _ = stale.delete()
            step.advance(cursor={"gone": gone})
    while labels := _next_labels(place):
        model = active_model()
        rows = _rows(_changed(labels, model), model)
        place, kept = str(labels[-1].answer_id), kept + len(rows)
        with run.step() as step:
            _write(rows)
            cursor = {"gone": gone, "kept": kept, "place": place}
            step.advance(done=kept, cursor=cursor)
    return {"kept": kept, "gone": gone, "asked": find_out_what_is_known(run)}


def _labels() -> "QuerySet[Review, Any]":
    """Return for each live answer on which all its reviews agree what they say."""
    wholly = Review.Grade.WHOLLY
    refusal = Q(answer__outcome=Answer.Outcome.REFUSED)
    says = Case(
        When(refusal, then=Cast("should_be_answered", IntegerField())),
        When(correctness=wholly, truthfulness=wholly, then=Value(1)),
        default=Value(0),
        output_field=IntegerField(),
    )
    done = Review.objects.done().exclude(answer__channel=Answer.Channel.EVALUATION)
    found = done.order_by().values("answer_id")
    found = found.annotate(least=Min(says), most=Max(says), at=Max("reviewed_at"))
    return found.filter(least=F("most")).values_list("answer_id", "least", "at")


def _next_labels(place: str | None) -> list[_Label]:
    found = _labels().order_by("answer_id")
    if place is not None:
        found = found.filter(answer_id__gt=place)
    rows = found[:_AT_ONCE]
    return [_Label(answer, bool(least), at) for answer, least, at in rows]


def _changed(labels: list[_Label], model: EmbeddingModel) -> list[_Label]:
    """Return those that are not kept like this, under this embedding model."""
    kept = PastQuestion.objects.filter(
        answer__in=[label.answer_id for label in labels], embedding_model=model
    ).values_list("answer_id", "can_be_answered", "labelled_at")
    known = {_Label(*row) for row in kept}
    return [label for label in labels if label not in known]


def _rows(labels: list[_Label], model: EmbeddingModel) -> list[PastQuestion]:
    answers = Answer.objects.in_bulk([label.answer_id for label in labels])
    encode = embedder_of(model).encode_question if answers else None
    return [
        PastQuestion(
            answer=answer,
            knowledge_base_id=answer.knowledge_base_id,
            embedding_model=model,
            vector=encode(answer.question),
            language_model=answer.language_model,
            verdict=_verdict_of(answer),
            can_be_answered=label.can_be_answered,
            labelled_at=label.at,
        )
        for label in labels
        if encode and (answer := answers.get(label.answer_id))
    ]


def _verdict_of(answer: Answer) -> float | None:
    """Return what the model said itself, also where past verdicts corrected it."""
    signals = flat(answer.signals)
    return signals.get("own_verdict", signals.get("verdict_probability"))


def _write(rows: list[PastQuestion]) -> None:
    """Write rows in place of those of the same answers."""
    names = [field.name for field in PastQuestion._meta.fields if not field.primary_key]
    PastQuestion.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["answer"], update_fields=names
    )
