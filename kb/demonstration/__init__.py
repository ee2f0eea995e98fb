"""The knowledge of an invented card issuer, for trying out a new installation."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.utils import timezone

from accounts.prepared import lock_until_commit
from kb.audiences.models import Audience
from kb.audiences.services import create_audience
from kb.conflicts.background import enqueue_comparison
from kb.documents.models import Document, KnowledgeBase, Section
from kb.documents.services import SectionNode, create_document
from kb.entries.models import Entry
from kb.entries.services import create_entries
from kb.entries.states import retire_entry
from kb.entries.values import UNVERIFIED_CONFIDENCE, NewEntry

logger = logging.getLogger(__name__)

KNOWLEDGE = Path(__file__).with_name("knowledge.json")
SLUG = "cards"


@dataclass(frozen=True, slots=True)
class _Loading:
    knowledge_base: KnowledgeBase
    audiences: Mapping[str, Audience]
    new_entries: list[NewEntry] = field(default_factory=list)
    retired: list[int] = field(default_factory=list)  # positions in `new_entries`


@transaction.atomic
def load_demonstration(*, author: User, file: Path = KNOWLEDGE) -> bool:
    """Load the demonstration knowledge base, unless it exists; return True if loaded.

    All in one transaction under a lock: of two processes only one loads it, and one
    that is killed leaves nothing behind. Existing audiences and groups of the same
    names are used.
    """
    lock_until_commit("kb.demonstration")
    content = json.loads(file.read_text(encoding="utf-8"))
    described = content["knowledge_base"]
    if KnowledgeBase.objects.filter(slug=described["slug"]).exists():
        return False
    loading = _Loading(
        knowledge_base=KnowledgeBase.objects.create(**described),
        audiences={
            audience.slug: audience for audience in map(_audience, content["audiences"])
        },
    )
    for each in content["documents"]:
        _plan_document(loading, each, author=author)
    entries = create_entries(loading.new_entries, author=author)
    for position in loading.retired:
        retire_entry(entry_id=entries[position].pk, by=author)
    enqueue_comparison(f"demonstration {loading.knowledge_base.pk}")
    logger.info(
        "Demonstration loaded: %d entries from %d documents",
        len(entries),
        len(content["documents"]),
    )
    return True


def _audience(described: Mapping[str, Any]) -> Audience:
    for name in described["groups"]:
        Group.objects.get_or_create(name=name)
    found = Audience.objects.filter(slug=described["slug"]).first()
    return found or create_audience(**described)


def _plan_document(
    loading: _Loading, described: Mapping[str, Any], *, author: User
) -> None:
    document = create_document(
        knowledge_base=loading.knowledge_base,
        title=described["title"],
        source=described["source"],
        audience=loading.audiences[described["audience"]],
        sections=[_node(section) for section in described["sections"]],
        author=author,
    )
    rows: dict[int | None, list[Section]] = {}
    for row in document.sections.order_by("position"):
        rows.setdefault(row.parent_id, []).append(row)
    for section, row in _pairs(described["sections"], rows, None):
        for entry in section.get("entries", []):
            if entry["state"] == Entry.State.RETIRED:
                loading.retired.append(len(loading.new_entries))
            loading.new_entries.append(_new_entry(loading, entry, document, row))


def _node(section: Mapping[str, Any]) -> SectionNode:
    below = section.get("sections", [])
    return SectionNode(section["heading"], tuple(_node(each) for each in below))


def _pairs(
    sections: Sequence[Mapping[str, Any]],
    rows: Mapping[int | None, Sequence[Section]],
    parent_id: int | None,
) -> Iterator[tuple[Mapping[str, Any], Section]]:
    for section, row in zip(sections, rows.get(parent_id, []), strict=True):
        yield section, row
        yield from _pairs(section.get("sections", []), rows, row.pk)


def _new_entry(
    loading: _Loading, described: Mapping[str, Any], document: Document, row: Section
) -> NewEntry:
    state = described["state"]
    is_written = state not in {Entry.State.VERIFIED, Entry.State.RETIRED}
    valid_until = None
    if "expired_days_ago" in described:
        valid_until = timezone.now() - timedelta(days=described["expired_days_ago"])
    elif "expires_in_days" in described:
        valid_until = timezone.now() + timedelta(days=described["expires_in_days"])
    slug = described.get("audience")
    return NewEntry(
        knowledge_base=loading.knowledge_base,
        audience=loading.audiences[slug] if slug else None,
        document=document,
        section=row,
        question=described.get("question", ""),
        text=described["text"],
        origin=described["origin"],
        verify=state == Entry.State.VERIFIED,
        state=state if is_written else Entry.State.DRAFT,
        confidence=described.get("confidence", UNVERIFIED_CONFIDENCE),
        valid_until=valid_until,
        reason="Demonstration.",
    )
