"""Writing knowledge bases: each function is one transaction."""

from datetime import datetime
from typing import TypedDict, Unpack

from django.db import IntegrityError, transaction
from django.utils import timezone

from kb.audiences.services import ensure_audience
from kb.documents.models import KnowledgeBase
from kb.exceptions import KnowledgeBaseExistsError, KnowledgeBaseNotFoundError
from kb.text.cleaning import clean_line, clean_slug
from kb.upkeep.services import enqueue_round

NAME_LIMIT = 100


class KnowledgeBaseChanges(TypedDict, total=False):
    name: str
    language: str
    review_interval_days: int | None
    when_overdue: str
    overdue_grace_days: int
    keep_texts_days: int | None


@transaction.atomic
def create_knowledge_base(
    *, slug: str, **given: Unpack[KnowledgeBaseChanges]
) -> KnowledgeBase:
    """Create an empty knowledge base; omitted fields get the model's defaults."""
    base = _changed(KnowledgeBase(slug=clean_slug(slug)), given)
    try:
        with transaction.atomic():
            base.save(force_insert=True)
    except IntegrityError as error:
        raise KnowledgeBaseExistsError(
            f"There is already a knowledge base {slug!r}; choose another slug."
        ) from error
    ensure_audience()
    return base


@transaction.atomic
def edit_knowledge_base(
    *, knowledge_base_id: int, **changes: Unpack[KnowledgeBaseChanges]
) -> KnowledgeBase:
    """Change a knowledge base; a job applies a new review interval to its entries."""
    base = _locked(knowledge_base_id)
    had = base.review_interval_days
    _changed(base, changes).save()
    if base.review_interval_days != had:
        enqueue_round()
    return base


def archive_knowledge_base(*, knowledge_base_id: int) -> KnowledgeBase:
    """Make a knowledge base read-only, without changing its content.

    It answers no questions, takes no new knowledge, and nothing in it waits for a
    person. The audit log records who archived it.
    """
    return _archived(knowledge_base_id, timezone.now())


def unarchive_knowledge_base(*, knowledge_base_id: int) -> KnowledgeBase:
    """Undo `archive_knowledge_base`."""
    return _archived(knowledge_base_id, None)


@transaction.atomic
def _archived(knowledge_base_id: int, at: datetime | None) -> KnowledgeBase:
    base = _locked(knowledge_base_id)
    if (base.archived_at is None) != (at is None):
        base.archived_at = at
        base.save(update_fields=["archived_at"])
    return base


def _locked(knowledge_base_id: int) -> KnowledgeBase:
    rows = KnowledgeBase.objects.select_for_update().filter(pk=knowledge_base_id)
    base = rows.first()
    if base is None:
        raise KnowledgeBaseNotFoundError(
            f"There is no knowledge base {knowledge_base_id}."
        )
    return base


def _changed(base: KnowledgeBase, changes: KnowledgeBaseChanges) -> KnowledgeBase:
    for name, value in changes.items():
        setattr(base, name, value)
    base.name = clean_line(base.name, field="name", limit=NAME_LIMIT)
    return base
