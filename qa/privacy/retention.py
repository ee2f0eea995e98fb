"""Each night: erase the words of what a knowledge base has kept for longer than it wants."""

from datetime import datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID

from django.utils import timezone

from jobs.run import JobRun
from jobs.services import enqueue
from kb.documents.models import KnowledgeBase
from qa.answers.models import Answer
from qa.privacy.scrubbing import BATCH, scrub_in_steps

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
        erased = scrub_in_steps(
            partial(_next, knowledge_base, before), step=run.step, done=erased
        )
    return {"erased": erased}


def _next(knowledge_base: KnowledgeBase, before: datetime) -> list[UUID]:
    rows = Answer.objects.erasable().filter(
        knowledge_base=knowledge_base, created_at__lt=before
    )
    return list(rows.order_by("created_at").values_list("pk", flat=True)[:BATCH])
