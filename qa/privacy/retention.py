"""Each night: erase the words of what a knowledge base has kept for longer than it wants."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.utils import timezone

from jobs.run import JobRun
from jobs.services import enqueue
from kb.documents.models import KnowledgeBase
from qa.answers.models import Answer
from qa.privacy.scrubbing import BATCH, scrub_answers

KIND: Final = "qa.erase_old_texts"


def enqueue_where_wanted() -> None:
    if KnowledgeBase.objects.filter(keep_texts_days__isnull=False).exists():
        enqueue(KIND, {}, idempotency_key=KIND)


def erase_old_texts(run: JobRun) -> dict[str, object]:
    """Erase in batches, a step each, so that a killed job goes on; handler of `KIND`."""
    now, erased = timezone.now(), run.done
    bases = KnowledgeBase.objects.filter(keep_texts_days__isnull=False)
    for knowledge_base in bases.order_by("pk"):
        before = now - timedelta(days=knowledge_base.keep_texts_days or 0)
        while ids := _next(knowledge_base, before):
            with run.step() as step:
                erased += scrub_answers(ids, now)
                step.advance(done=erased)
    return {"erased": erased}


def _next(knowledge_base: KnowledgeBase, before: datetime) -> list[UUID]:
    rows = Answer.objects.filter(
        knowledge_base=knowledge_base, created_at__lt=before, erased_at__isnull=True
    ).exclude(outcome=Answer.Outcome.PENDING)
    return list(rows.order_by("created_at").values_list("pk", flat=True)[:BATCH])
