"""Entries that may answer a gap or an escalated question, offered to an expert."""

from collections.abc import Sequence

import numpy as np
from django.contrib.auth.models import User
from django.utils import timezone

from accounts.people import AnyUser, person_name
from kb.audiences.models import Audience
from kb.documents.models import KnowledgeBase
from kb.embedding.services import embed_question
from kb.entries.finding import found_by
from kb.entries.models import Entry, EntryQuerySet
from kb.search import search
from kb.types import Evidence, QuestionVector, Scope
from qa.gaps.models import Gap
from qa.votes.models import Vote

Readers = Sequence[AnyUser]

MAX_FOUND = 10
_BY_MEANING = 3  # places kept for entries nearest in meaning
_NEAREST = 5
_VOTES = 500  # the newest votes on a gap that are considered
# Practically any confidence: even a doubtful entry near a gap is worth a look.
_ANY_CONFIDENCE = 0.01


def nearest_entries(gap: Gap, viewer: User) -> tuple[Evidence, ...]:
    if gap.embedding_model is None:
        return ()
    vector = QuestionVector(
        text=gap.question,
        values=np.array(gap.vector, dtype=np.float32),
        model_id=gap.embedding_model.pk,
        fingerprint=gap.embedding_model.fingerprint,
        milliseconds=0.0,
    )
    return _nearest(vector, gap.knowledge_base_id, [viewer])


def chosen_entries(gap: Gap, viewer: User) -> list[tuple[Entry, list[str]]]:
    """Return the entries that voters chose as answers to a gap, each with their names.

    Most often chosen first, without those that the viewer may not see (two queries).
    """
    votes = Vote.objects.visible_to(viewer).filter(answer__gap_question__gap=gap)
    named = votes.exclude(answering_entry=None).select_related("user")
    people: dict[int | None, dict[str, None]] = {}
    for vote in named.order_by("-updated_at")[:_VOTES]:
        by = people.setdefault(vote.shown_answering_entry, {})
        by[person_name(vote.user)] = None
    ids = sorted(filter(None, people), key=lambda each: -len(people[each]))
    found = choosable(gap.knowledge_base, [viewer]).in_bulk(ids)
    return [(found[each], list(people[each])) for each in ids if each in found]


def entries_near(
    question: str, knowledge_base: KnowledgeBase, readers: Readers
) -> list[Entry]:
    """Return the nearest entries that every reader may see, nearest first."""
    hits = _nearest(embed_question(question), knowledge_base.pk, readers)
    return entries_of(hits, choosable(knowledge_base, readers))


def entries_of(hits: Sequence[Evidence], entries: EntryQuerySet) -> list[Entry]:
    found = entries.in_bulk([hit.entry_id for hit in hits])
    return [found[hit.entry_id] for hit in hits if hit.entry_id in found]


def entries_saying(
    words: str, knowledge_base: KnowledgeBase, readers: Readers
) -> list[Entry]:
    """Return entries found by words, then by meaning, that every reader may see.

    However many contain the words, the nearest in meaning are included, such as an
    entry that answers the question in other words.
    """
    found = found_by(
        words,
        choosable(knowledge_base, readers),
        reader=readers[0],
        knowledge_base=knowledge_base,
    )
    by_words = max(MAX_FOUND - len(found.related), MAX_FOUND - _BY_MEANING)
    return [*found.by_words[:by_words], *found.related][:MAX_FOUND]


def choosable(knowledge_base: KnowledgeBase, readers: Readers) -> EntryQuerySet:
    """Return the entries that the first reader may look up and the others may see."""
    entries = Entry.objects.filter(knowledge_base=knowledge_base)
    entries = entries.exclude(state=Entry.State.RETIRED).readable_by(readers[0])
    for reader in readers[1:]:
        entries = entries.visible_to(reader)
    return entries.defer("search_vector")


def _nearest(
    vector: QuestionVector, knowledge_base_id: int, readers: Readers
) -> tuple[Evidence, ...]:
    seen = [set(Audience.objects.ids_visible_to(reader)) for reader in readers]
    scope = Scope(
        knowledge_base_id=knowledge_base_id,
        audience_ids=tuple(sorted(set.intersection(*seen))),
        unverified_floor=_ANY_CONFIDENCE,
        enriched_floor=_ANY_CONFIDENCE,
        at=timezone.now(),
    )
    found = search(vector, "", scope=scope, top_k=_NEAREST)
    return tuple(sorted(found.hits, key=lambda hit: hit.distance))
