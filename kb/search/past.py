"""Vectors and conflicts as of a past moment, and since when the past is recorded."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Min

from accounts.acting import unrestricted
from accounts.exceptions import UnavailableError
from accounts.prepared import execute, lock_until_commit
from kb.conflicts.models import Conflict
from kb.embedding.models import EmbeddingModel, FormerVector
from kb.embedding.services import Embedded, active_model, prepare_vectors
from kb.entries.models import Revision
from kb.exceptions import PastNotReadyError
from kb.types import Contradiction

from .models import FormerRow
from .related import find_quote

# Entries that may be evidence, or the reason why there was none.
_WITHOUT_VECTORS = """
SELECT p.id, p.revision_id, p.digest,
       CASE WHEN p.document_audience = p.audience_id THEN p.title ELSE '' END,
       CASE WHEN p.document_audience = p.audience_id THEN p.heading ELSE '' END
FROM kb_past(%(knowledge_base)s, %(at)s) p
WHERE p.state NOT IN ('draft', 'retired')
    AND NOT EXISTS (
        SELECT FROM kb_entryembedding v WHERE v.entry_id = p.id
            AND v.model_id = %(model)s AND v.text_sha256 = p.digest)
    AND NOT EXISTS (
        SELECT FROM kb_formervector v WHERE v.entry_id = p.id
            AND v.model_id = %(model)s AND v.text_sha256 = p.digest)
ORDER BY p.id
"""
_BATCH = 64
# Each reads a whole knowledge base in a thread of the web server.
_AT_ONCE = max(1, settings.WEB_THREADS // 8)
_places = threading.BoundedSemaphore(_AT_ONCE)


@contextmanager
def one_of_few() -> Iterator[None]:
    """Hold one of this process's few slots for looking at a past moment.

    Raises:
        UnavailableError: All slots are taken.
    """
    if not _places.acquire(blocking=False):
        raise UnavailableError(
            f"{_AT_ONCE} requests as of a past moment are in progress, the most "
            "allowed at once (an eighth of NESCIO_WEB_THREADS); try again in a moment."
        )
    try:
        yield
    finally:
        _places.release()


def exact_since() -> datetime | None:
    """Return since when everything is recorded that answers about the past need."""
    # One of the migrations replaced by kb.0001_initial; new databases record it too.
    rows = MigrationRecorder.Migration.objects.filter(app="kb", name="0009_past")
    return rows.values_list("applied", flat=True).first()


def first_moment(knowledge_base_id: int) -> datetime | None:
    """Return when the first entry visible to the reader was written, or None."""
    rows = Revision.objects.filter(entry__knowledge_base=knowledge_base_id)
    first: datetime | None = rows.aggregate(first=Min("created_at"))["first"]
    return first


def make_past_vectors(
    knowledge_base_id: int, at: datetime, *, limit: int | None = None
) -> int:
    """Embed entries' content at `at` that has no stored vector; return how many.

    The vectors are shared by all readers, made in batches, and kept.

    Raises:
        PastNotReadyError: More than `limit` entries; nothing was embedded.
    """
    model = active_model()
    parameters = {"knowledge_base": knowledge_base_id, "at": at, "model": model.pk}
    with unrestricted("vectors of what entries said"):
        missing = execute(_WITHOUT_VECTORS, parameters)
        if limit is not None and len(missing) > limit:
            raise PastNotReadyError(
                f"More than {limit:,} entries were different at that moment and have "
                "to be embedded first, too many for one request; ask once with manage.py "
                "ask --as-of, which embeds them."
            )
        return sum(
            _make(missing[start : start + _BATCH], model)
            for start in range(0, len(missing), _BATCH)
        )


@transaction.atomic
def _make(rows: Sequence[tuple[Any, ...]], model: EmbeddingModel) -> int:
    """Embed those of a batch that were not embedded meanwhile; return how many."""
    lock_until_commit("kb_formervector")
    there = FormerVector.objects.filter(model=model, entry__in=[pk for pk, *_ in rows])
    made = set(there.values_list("entry_id", "text_sha256"))
    left = [row for row in rows if (row[0], row[2]) not in made]
    FormerVector.objects.bulk_create(_vectors(left, model), ignore_conflicts=True)
    return len(left)


def _vectors(
    rows: Sequence[tuple[Any, ...]], model: EmbeddingModel
) -> Iterator[FormerVector]:
    words = Revision.objects.in_bulk([revision for _, revision, *_ in rows])
    said = {
        (entry, digest): Embedded(
            title or "", heading or "", words[revision].question, words[revision].text
        ).parts
        for entry, revision, digest, title, heading in rows
    }
    texts = [text for parts in said.values() for text in parts.values()]
    made = prepare_vectors(texts, model).by_text
    for (entry, digest), parts in said.items():
        for part, text in parts.items():
            yield FormerVector(
                entry_id=entry,
                model=model,
                part=part,
                vector=made[text],
                text_sha256=digest,
            )


def contradictions_then(
    entry_ids: Sequence[int], at: datetime
) -> tuple[Contradiction, ...]:
    """Return the contradictions between any two of these that were open then."""
    rows = {
        row["id"]: row
        for row in Conflict.objects.filter(
            first__in=entry_ids, second__in=entry_ids, found_at__lte=at
        ).values("id", "first_id", "second_id", "kind", "state", "score", "reasons")
    }
    with unrestricted("conflicts as they were"):
        rows |= FormerRow.objects.at(at, "kb_conflict", rows)  # type: ignore[arg-type]  # conflicts are updated, so never None
    newest = Revision.objects.filter(entry__in=entry_ids, created_at__lte=at)
    newest = newest.order_by("entry", "-number").distinct("entry")
    texts = dict(newest.values_list("entry", "text"))
    open_then = [
        row
        for row in rows.values()
        if (row["kind"], row["state"])
        == (Conflict.Kind.CONTRADICTION, Conflict.State.OPEN)
    ]
    return tuple(
        Contradiction(
            row["id"],
            (row["first_id"], row["second_id"]),
            (
                find_quote(texts.get(row["first_id"], ""), row["reasons"], "first"),
                find_quote(texts.get(row["second_id"], ""), row["reasons"], "second"),
            ),
        )
        for row in sorted(open_then, key=lambda row: (-row["score"], row["id"]))
    )
