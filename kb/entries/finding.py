"""Interactive search among the entries a user may read, by words and by meaning."""

from dataclasses import dataclass

from django.db import transaction
from django.db.models.functions import Cast
from django.utils import timezone
from pgvector.django import L2Distance, VectorField

from accounts.people import AnyUser
from accounts.replica import reading_alias
from kb.audiences.models import Audience
from kb.documents.models import KnowledgeBase
from kb.embedding.models import EntryEmbedding
from kb.entries.models import Entry, EntryQuerySet
from kb.search import embed_question, search
from kb.search.evidence import prepare_index_scan
from kb.types import Scope

AT_MOST = 50
RELATED = 10
# Results considered before the filters of a list remove some.
_LOOKED_AT = 200


@dataclass(frozen=True, slots=True)
class Found:
    """Entries that contain all words, and others close in meaning; best first."""

    by_words: tuple[Entry, ...]
    related: tuple[Entry, ...]


def found_by(
    words: str,
    entries: EntryQuerySet,
    *,
    reader: AnyUser,
    knowledge_base: KnowledgeBase | None,
) -> Found:
    """Return at most `AT_MOST` of `entries` by words and `RELATED` by meaning.

    A word may be incomplete; misspelt ones match by meaning. Expired and retired
    entries are found by words alone.

    Args:
        entries: The entries that the reader may read, already filtered.
        knowledge_base: None for all of them, where misspelt words find less.
    """
    said = entries.saying(words, or_beginning=True)
    by_words = set(said.order_by().values_list("pk", flat=True)[:_LOOKED_AT])
    if knowledge_base is None:
        near = related_to(words, entries)
    else:
        scope = Scope(
            knowledge_base_id=knowledge_base.pk,
            audience_ids=Audience.objects.ids_visible_to(reader),
            unverified_floor=0.0,
            at=timezone.now(),
        )
        looked = search(embed_question(words), words, scope=scope, top_k=_LOOKED_AT)
        near = [hit.entry_id for hit in looked.hits]
    place = {key: number for number, key in enumerate(near)}
    rows = entries.filter(pk__in={*by_words, *place}).order_by()
    order = sorted(
        rows.values_list("pk", flat=True),
        key=lambda pk: (place.get(pk, _LOOKED_AT), pk),
    )
    first = [pk for pk in order if pk in by_words][:AT_MOST]
    others = [pk for pk in order if pk not in by_words][:RELATED]
    found = entries.in_bulk([*first, *others])
    return Found(
        tuple(found[pk] for pk in first if pk in found),
        tuple(found[pk] for pk in others if pk in found),
    )


def related_to(words: str, entries: EntryQuerySet) -> list[int]:
    """Return the ids of at most `RELATED` of `entries`, the closest in meaning first.

    Across all knowledge bases, through the vector index if there is one and the list is
    not a small part of all entries: a quick look, for when no entry has the words.
    """
    vector = embed_question(words)
    said = EntryEmbedding.objects.filter(
        model_id=vector.model_id, entry__in=entries.order_by().values("pk")
    )
    # Cast as in the index: the column itself has no fixed width.
    wide = Cast("vector", VectorField(dimensions=len(vector.values)))
    near = said.order_by(L2Distance(wide, vector.values))
    with transaction.atomic(using=reading_alias()):
        prepare_index_scan(may_sort=True)
        # An entry may have several vectors.
        keys = list(near.values_list("entry_id", flat=True)[: 4 * RELATED])
    return list(dict.fromkeys(keys))[:RELATED]
