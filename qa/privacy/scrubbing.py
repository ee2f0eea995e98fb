"""Erasing the words of answers: questions, texts and comments on them.

What is counted and learnt from stays: outcomes, signals, evidence, thumbs, grades. A
question without words is not used as an example, so nothing is trained or calibrated on
it any more.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from jobs.run import JobRun, Step
from jobs.services import enqueue
from kb.documents.models import KnowledgeBase
from kb.enrichment.models import Proposal
from qa.answers.models import ERASED, Answer
from qa.answers.past_question_models import PastQuestion
from qa.gaps.escalation_models import Escalation
from qa.gaps.models import Gap, GapQuestion
from qa.reviews.models import Review
from qa.votes.models import Vote

BATCH: Final = 200
_SEED_CHARACTERS: Final = 1_000  # of a proposal's seed question
_KEPT_OF_BOUNDARY: Final = ("fingerprint", "examples")


StepMaker = Callable[[], AbstractContextManager[Step | None]]


def scrub_in_steps(
    next_ids: Callable[[], Collection[UUID]], *, step: StepMaker, done: int = 0
) -> int:
    """Erase in batches until none is left; return how many, including `done`."""
    while ids := next_ids():
        with step() as made:
            done += scrub_answers(ids, timezone.now())
            if made is not None:
                made.advance(done=done)
    return done


@transaction.atomic
def scrub_answers(ids: Collection[UUID], at: datetime) -> int:
    """Erase the words of decided answers and of rows about them; count the answers.

    An escalation that still waits is closed and an open review deleted, as nobody could
    judge a question without words.
    """
    rows = Answer.objects.erasable().filter(pk__in=ids)
    answers = list(rows.select_for_update(of=("self",), no_key=True))
    found = [answer.pk for answer in answers]
    texts = {answer.question for answer in answers}
    Vote.objects.filter(answer__in=found).update(comment="", expected_answer="")
    _scrub_escalations(found, at)
    reviews = Review.objects.filter(answer__in=found)
    reviews.open().delete()
    reviews.update(ideal_answer="", note="")
    PastQuestion.objects.filter(answer__in=found).delete()
    for answer in answers:
        _scrub(answer, at)
    Answer.objects.bulk_update(answers, [*_EMPTY, *_REDUCED], batch_size=BATCH)
    _scrub_gaps(texts)
    seeds = [text[:_SEED_CHARACTERS] for text in texts]
    Proposal.objects.filter(seed_question__in=seeds).update(seed_question=ERASED)
    return len(answers)


_EMPTY: Final = ("question", "typed", "text", "reasoning", "error", "erased_at")
_REDUCED: Final = ("generation", "boundary", "contradictions")


def _scrub(answer: Answer, at: datetime) -> None:
    answer.question, answer.reasoning, answer.error = ERASED, "", ""
    answer.typed = ""
    answer.text = ERASED if answer.text else ""
    answer.generation = _numbers(answer.generation)
    answer.boundary = {
        name: answer.boundary[name]
        for name in _KEPT_OF_BOUNDARY
        if name in answer.boundary
    }
    answer.contradictions = [{**each, "quotes": []} for each in answer.contradictions]
    answer.erased_at = at


def _numbers(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts and measurements of a generation, without its words."""
    return {k: v for k, v in fields.items() if isinstance(v, int | float)}


def _scrub_escalations(answers: Collection[UUID], at: datetime) -> None:
    rows = Escalation.objects.filter(answer__in=answers)
    rows.update(note="")
    rows.waiting().update(
        state=Escalation.State.CLOSED, reply=ERASED, replied_at=at, assignee=None
    )
    rows.exclude(reply="").update(reply=ERASED)


def _scrub_gaps(texts: Collection[str]) -> None:
    """Name gaps after another of their questions that still has words, if any."""
    for gap in Gap.objects.filter(question__in=texts):
        others = GapQuestion.objects.filter(gap=gap, answer__erased_at__isnull=True)
        text = others.newest().values_list("answer__question", flat=True).first()
        Gap.objects.filter(pk=gap.pk).update(question=text or ERASED)


KIND: Final = "qa.erase_old_texts"


def enqueue_where_wanted() -> None:
    if KnowledgeBase.objects.filter(keep_texts_days__isnull=False).exists():
        enqueue(KIND, {}, idempotency_key=KIND)


def erase_old_texts(run: JobRun) -> dict[str, object]:
    """Erase old texts, a step per batch, so that a killed job can go on; for `KIND`."""
    now, erased = timezone.now(), run.done
    bases = KnowledgeBase.objects.filter(keep_texts_days__isnull=False)
    for knowledge_base in bases.order_by("pk"):
        before = now - timedelta(days=knowledge_base.keep_texts_days or 0)
        erased = scrub_in_steps(
            partial(_next, knowledge_base, before), step=run.step, done=erased
        )
    return {"erased": erased}


def _next(knowledge_base: KnowledgeBase, before: datetime) -> list[UUID]:
    rows = Answer.objects.erasable().filter(
        knowledge_base=knowledge_base, created_at__lt=before
    )
    return list(rows.order_by("created_at").values_list("pk", flat=True)[:BATCH])
