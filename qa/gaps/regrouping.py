"""Gaps that experts regroup: merged where they mean the same, split where they do not.

The next run of gap finding keeps what was regrouped: it places a question once, and only
what is in no gap; no step of it moves a question or joins two gaps. What is asked later
joins the nearest centroid, and these are brought up to date here.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import numpy as np
from django.contrib.auth.models import User
from django.db import transaction

from kb.embedding.embedder import get_embedder
from kb.embedding.services import active_model
from qa.exceptions import GapClosedError, GapNotFoundError, InvalidGapError
from qa.gaps.clusters import most_central, moved
from qa.gaps.models import Gap, GapCursor, GapQuestion, Repeat

from .finding import count_gaps

MAX_MERGED: Final = 50
# The newest questions that say where the rest of a gap lies.
_EMBEDDED: Final = 200


@transaction.atomic
def to_merge(gap_ids: Iterable[int], *, by: User) -> tuple[Gap, list[Gap]]:
    """Lock gaps; return the one with most questions, which stays, and the others.

    Raises:
        InvalidGapError: They are fewer than two or too many, or not of one knowledge base.
        GapClosedError: One of them is not open.
    """
    keys = set(gap_ids)
    if not 2 <= len(keys) <= MAX_MERGED:
        raise InvalidGapError(
            f"Choose 2 to {MAX_MERGED} gaps to merge, not {len(keys)}."
        )
    gaps = _locked(keys, by)
    bases = sorted({gap.knowledge_base.name for gap in gaps})
    if len(bases) > 1:
        raise InvalidGapError(
            f"The gaps are of several knowledge bases ({', '.join(bases)}); choose those "
            "of one."
        )
    kept, *others = sorted(gaps, key=lambda gap: (-gap.questions, gap.pk))
    return kept, others


@transaction.atomic
def merge(gap_ids: Iterable[int], *, by: User) -> Gap:
    """Move the questions of all to the gap with most, which stays; delete the others.

    Raises:
        NescioError: As `to_merge` says.
    """
    kept, others = to_merge(gap_ids, by=by)
    # Those of another embedding model are no place for a mean; the next run embeds them.
    alike = [gap for gap in others if gap.embedding_model_id == kept.embedding_model_id]
    if alike:
        sums = [gap.questions * np.array(gap.vector, np.float32) for gap in alike]
        middle = np.array(kept.vector, dtype=np.float32)
        kept.vector = moved(middle, kept.questions, np.stack(sums))
    owners = (gap.owner for gap in others if gap.owner is not None)
    kept.owner = kept.owner or next(owners, None)
    kept.save(update_fields=["vector", "owner"])
    GapQuestion.objects.filter(gap__in=others).update(gap=kept)
    Repeat.objects.filter(gap__in=others).update(gap=kept)
    Gap.objects.filter(pk__in=[gap.pk for gap in others]).delete()
    count_gaps([kept.pk])
    kept.refresh_from_db()
    return kept


@transaction.atomic
def split(gap_id: int, *, by: User, question_ids: Collection[int]) -> Gap:
    """Move questions of a gap to one of their own, which is returned.

    Args:
        question_ids: Keys of its `GapQuestion`s.

    Raises:
        InvalidGapError: None of its questions is chosen, or all are, or one is not its.
        GapClosedError: It is not open.
    """
    (gap,) = _locked({gap_id}, by)
    members = gap.members.select_related("answer")
    chosen = list(members.visible_to(by).filter(pk__in=question_ids))
    rest = list(members.exclude(pk__in=question_ids).newest()[:_EMBEDDED])
    if not question_ids:
        raise InvalidGapError("No question is chosen; choose those to move.")
    if len(chosen) != len(set(question_ids)):
        raise InvalidGapError(
            f"Not all of the chosen questions are in gap {gap_id} now; choose again."
        )
    if not rest:
        raise InvalidGapError(
            f"All questions of gap {gap_id} are chosen; leave one of them at least."
        )
    made = Gap(
        knowledge_base=gap.knowledge_base,
        owner=gap.owner,
        first_seen=min(each.asked_at for each in chosen),
        last_seen=max(each.asked_at for each in chosen),
    )
    _put_amid(made, chosen)
    _put_amid(gap, rest)
    for each in (made, gap):
        each.save()
    GapQuestion.objects.filter(pk__in=question_ids).update(gap=made)
    count_gaps([gap.pk, made.pk])
    made.refresh_from_db()
    return made


def _put_amid(gap: Gap, members: Sequence[GapQuestion]) -> None:
    """Set a gap's centroid, not saved, and its question if that is none of them."""
    readable = [each for each in members if each.answer.erased_at is None] or members
    texts = [each.answer.question for each in readable]
    model = active_model()
    vectors = get_embedder(model).encode(texts)
    gap.embedding_model = model
    gap.vector = moved(vectors[0], 0, vectors)
    if gap.question not in texts:
        gap.question = texts[most_central(vectors)]


def _locked(gap_ids: Collection[int], by: User) -> list[Gap]:
    # Finding holds the cursor while it places questions, and counts on gaps to stay.
    GapCursor.objects.get_or_create(pk=1)
    GapCursor.objects.select_for_update().get(pk=1)
    visible = Gap.objects.visible_to(by).select_related("knowledge_base", "owner")
    locked = visible.select_for_update(of=("self",)).order_by("pk")
    gaps = list(locked.filter(pk__in=gap_ids))
    for missing in sorted(set(gap_ids).difference(gap.pk for gap in gaps)):
        raise GapNotFoundError(f"There is no gap {missing}.")
    for gap in gaps:
        if gap.state != Gap.State.OPEN:
            raise GapClosedError(
                f"Gap {gap.pk} is {gap.get_state_display()}; reopen it first."
            )
    return gaps
