"""Finding out which past questions the language model answers correctly by itself.

Reviews of an answer from evidence do not show this. The model is asked again without
evidence, and its answer is compared with the right answer, the ideal one, or the entry
made from it. An unsourced answer was reviewed itself.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.conf import settings
from django.db.models import (
    Case,
    F,
    IntegerField,
    Max,
    Min,
    Prefetch,
    Q,
    QuerySet,
    Value,
    When,
)
from django.db.models.functions import Cast

from jobs.run import JobRun
from kb.embedding.embedder import get_embedder
from kb.embedding.models import EmbeddingModel
from kb.embedding.services import active_model
from kb.text.terms import asks_about_now
from qa.answers.models import Answer
from qa.answers.past_question_models import PastQuestion
from qa.evaluation.metrics.text import contains_gold, normalised
from qa.pipeline.policy import RetrievalTiming
from qa.pipeline.replay import flat
from qa.policies.models import Policy
from qa.reviews.models import Review
from qa.training.labels import text_of

if TYPE_CHECKING:
    from qa.inference.closed_book_form import ClosedBookForm

# Questions per batch, which takes a few seconds.
_AT_ONCE: Final = 32
# A reference of more words than this is a sentence, which contains the answer.
_SHORT_WORDS: Final = 6


def find_out_what_is_known(run: JobRun) -> int:
    """Label past questions by whether the model knows the answer; return how many.

    Skipped if no policy decides by past questions, or if a language server answers.
    Questions already asked of this model and prompt form are left out; finished batches
    remain if the run is killed.
    """
    by_history = Policy.objects.filter(
        is_active=True, retrieval_timing=RetrievalTiming.HISTORY
    )
    wanted = PastQuestion.objects.filter(
        knowledge_base__in=by_history.values("knowledge_base")
    )
    if settings.LANGUAGE_SERVER_URL or not wanted.exists():
        return 0
    # Imports torch, which a worker without such a policy must not load.
    from qa.inference.policy_models import load_closed_book_form  # noqa: PLC0415

    form, asked = load_closed_book_form(), 0
    rows = wanted.exclude(own_model=form.fingerprint).select_related("answer")
    rows = rows.prefetch_related(
        Prefetch("answer__reviews", Review.objects.done().select_related("entry"))
    ).order_by("pk")
    while batch := [*rows[:_AT_ONCE]]:
        _label(batch, form)
        asked += len(batch)
        with run.step() as step:
            PastQuestion.objects.bulk_update(batch, ["is_known", "own_model"])
            step.advance(done=run.done + len(batch))
    return asked


def answers_rightly(said: str, references: Iterable[str], *, question: str) -> bool:
    """Return whether a short answer agrees with a reference answer.

    A short reference must be contained in the answer. A longer one must contain every
    word of the answer that is not in the question, of which there must be at least one.
    """
    texts = [normalised(text) for text in references]
    short = [text for text in texts if len(text.split()) <= _SHORT_WORDS]
    if contains_gold(said, short):
        return True
    new = set(normalised(said).split()) - set(normalised(question).split())
    long = (set(text.split()) for text in texts if text not in short)
    return bool(new) and any(new <= words for words in long)


def _label(rows: Sequence[PastQuestion], form: "ClosedBookForm") -> None:
    open_rows = []
    for row in rows:
        answer = row.answer
        row.own_model, row.is_known = form.fingerprint, None
        if asks_about_now(answer.question, answer.language):
            row.is_known = False  # the answer changes over time
        elif answer.is_unsourced or references_of(row):
            open_rows.append(row)
    said = form.write_each([row.answer.question for row in open_rows])
    for row, text in zip(open_rows, said, strict=True):
        row.is_known = _knows(row, text)


def _knows(row: PastQuestion, said: str) -> bool | None:
    """Return whether the model alone is right now; None if that is unknown.

    Reviews of an unsourced answer apply only to the same words: another model may have
    written it, or this one with evidence.
    """
    answer = row.answer
    written = text_of(answer) or answer.text
    if answer.is_unsourced and normalised(said) == normalised(written):
        return row.can_be_answered
    references = references_of(row)
    if not references:
        return None
    return answers_rightly(said, references, question=answer.question)


def references_of(row: PastQuestion) -> list[str]:
    answer, texts = row.answer, []
    if answer.outcome == Answer.Outcome.ANSWERED and row.can_be_answered:
        texts.append(text_of(answer) or answer.text)
    for review in answer.reviews.all():
        texts.append(review.ideal_answer)
        if review.entry:
            texts.append(review.entry.text)
    return [text for text in texts if normalised(text)]


KIND = "qa.keep_past_questions"
_ROWS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class _Label:
    answer_id: UUID
    can_be_answered: bool
    at: datetime


def keep_past_questions(run: JobRun) -> dict[str, object]:
    """Synchronise past questions with the reviews; handler of `KIND`.

    Deletes stale labels first; then writes new and changed ones in batches by answer
    id; finally finds out what the model knows by itself. A killed run resumes where it
    stopped.
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
    """Return the label of each live answer on which all its reviews agree."""
    refusal = Q(answer__outcome=Answer.Outcome.REFUSED)
    says = Case(
        When(refusal, then=Cast("should_be_answered", IntegerField())),
        When(Q(**Review.RIGHT_TO_SHOW), then=Value(1)),
        default=Value(0),
        output_field=IntegerField(),
    )
    done = Review.objects.teaching().exclude(answer__channel=Answer.Channel.EVALUATION)
    found = done.order_by().values("answer_id")
    found = found.annotate(least=Min(says), most=Max(says), at=Max("reviewed_at"))
    return found.filter(least=F("most")).values_list("answer_id", "least", "at")


def _next_labels(place: str | None) -> list[_Label]:
    found = _labels().order_by("answer_id")
    if place is not None:
        found = found.filter(answer_id__gt=place)
    rows = found[:_ROWS_AT_ONCE]
    return [_Label(answer, bool(least), at) for answer, least, at in rows]


def _changed(labels: list[_Label], model: EmbeddingModel) -> list[_Label]:
    kept = PastQuestion.objects.filter(
        answer__in=[label.answer_id for label in labels], embedding_model=model
    ).values_list("answer_id", "can_be_answered", "labelled_at")
    known = {_Label(*row) for row in kept}
    return [label for label in labels if label not in known]


def _rows(labels: list[_Label], model: EmbeddingModel) -> list[PastQuestion]:
    answers = Answer.objects.in_bulk([label.answer_id for label in labels])
    encode = get_embedder(model).encode_question if answers else None
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
    """Return the model's own verdict, even if past verdicts corrected it."""
    signals = flat(answer.signals)
    return signals.get("own_verdict", signals.get("verdict_probability"))


def _write(rows: list[PastQuestion]) -> None:
    names = [field.name for field in PastQuestion._meta.fields if not field.primary_key]
    PastQuestion.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["answer"], update_fields=names
    )
