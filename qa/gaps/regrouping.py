"""Regrouping of gaps by experts: merge those of one meaning, split those of several.

The next run of gap finding keeps the result: it places each question once and never
moves one or merges gaps. Later questions join the nearest centroid, and centroids are
updated here.
"""

from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import numpy as np
from django.contrib.auth.models import User
from django.db import transaction

from accounts.people import person_name
from accounts.undo import ChangedSinceError, undoes
from kb.embedding.embedder import get_embedder
from kb.embedding.services import active_model
from qa.exceptions import GapClosedError, GapNotFoundError, InvalidGapError
from qa.gaps.clusters import most_central, moved
from qa.gaps.models import Gap, GapCursor, GapQuestion, GapQuestionQuerySet, Repeat

from .finding import count_gaps

MAX_MERGED: Final = 50
# The newest questions of a gap, from which its centroid is computed.
_EMBEDDED: Final = 200
_COLUMNS: Final = Gap._meta.concrete_fields


@transaction.atomic
def to_merge(gap_ids: Iterable[int], *, by: User) -> tuple[Gap, list[Gap]]:
    """Lock gaps; return the one with the most questions, which stays, and the others.

    Raises:
        InvalidGapError: There are fewer than two or too many, or they are not all of
            one knowledge base.
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
            f"The gaps are from several knowledge bases ({', '.join(bases)}); "
            "choose those of one."
        )
    kept, *others = sorted(gaps, key=lambda gap: (-gap.questions, gap.pk))
    return kept, others


@transaction.atomic
def merge(gap_ids: Iterable[int], *, by: User) -> Gap:
    """Move all questions to the gap with the most, which stays; delete the others."""
    kept, others = to_merge(gap_ids, by=by)
    # Vectors of different embedding models cannot be averaged; the next run embeds
    # them.
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


UNDO_MERGING: Final = "qa.gap merged"
_MAX_NOTED: Final = 20_000  # questions whose ids fit into a page


@transaction.atomic
def merge_undoably(
    gap_ids: Collection[int], *, by: User
) -> tuple[Gap, dict[str, Any] | None]:
    """Merge gaps; return the one that stays, and the data for undoing the merge.

    The data is None if too many questions were moved.
    """
    kept, others = to_merge(gap_ids, by=by)
    before, gone = _noted(kept), [_noted(gap) for gap in others]
    if sum(gap.questions for gap in others) > _MAX_NOTED:
        return merge(gap_ids, by=by), None
    for noted, gap in zip(gone, others, strict=True):
        noted["members"] = list(gap.members.order_by("pk").values_list("pk", flat=True))
        noted["repeats"] = list(gap.repeats.order_by("pk").values_list("pk", flat=True))
    kept = merge(gap_ids, by=by)
    return kept, {"before": before, "after": _noted(kept), "gone": gone}


def _noted(gap: Gap) -> dict[str, Any]:
    """Return a gap's columns in a form that JSON stores without loss."""
    noted = {field.attname: getattr(gap, field.attname) for field in _COLUMNS}
    vector = np.array(gap.vector, dtype=np.float32)
    noted["vector"] = b64encode(vector.tobytes()).decode()
    return {
        name: str(value) if isinstance(value, datetime | UUID) else value
        for name, value in noted.items()
    }


def _as_noted(noted: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns as noted by `_noted`, with None for related rows that are gone."""
    values: dict[str, Any] = {}
    for field in _COLUMNS:
        value = noted[field.attname]
        if field.attname == "vector":
            value = np.frombuffer(b64decode(value), dtype=np.float32)
        elif field.remote_field and value is not None:
            rows = field.remote_field.model._default_manager.filter(pk=value)
            value = value if rows.exists() else None
        else:
            value = field.to_python(value)
        values[field.attname] = value
    return values


@undoes(
    UNDO_MERGING,
    lambda noted: [
        f"merging gap {noted['after']['id']} and {', '.join(str(row['id']) for row in noted['gone'])}"
    ],
)
@transaction.atomic
def undo_merging(noted: Mapping[str, Any], by: User) -> None:
    """Restore the merged gaps; questions that joined since stay in the kept gap."""
    kept = _merged_now(noted, by)
    rows = _still_asked(noted["gone"])
    gone = [Gap(**_as_noted(row)) for row in rows]
    created = [gap.created_at for gap in gone]
    Gap.objects.bulk_create(gone)
    for gap, at in zip(gone, created, strict=True):
        gap.created_at = at  # the field sets it to the time of insertion
    Gap.objects.bulk_update(gone, ["created_at"])
    for gap, row in zip(gone, rows, strict=True):
        members = GapQuestion.objects.filter(pk__in=row["members"])
        members.update(gap=gap)
        Repeat.objects.filter(pk__in=row["repeats"]).update(gap=gap)
        # The gap's text must not bring back a question that was erased since.
        if members.filter(answer__erased_at=None).count() < len(row["members"]):
            _put_amid(gap, _newest(members))
            gap.save(update_fields=["embedding_model", "vector", "question"])
    count_gaps([kept.pk, *(gap.pk for gap in gone)])
    kept.refresh_from_db(fields=["questions"])
    if _noted(kept)["vector"] == noted["after"]["vector"]:
        before = _as_noted(noted["before"])
        kept.vector, kept.embedding_model_id = (
            before["vector"],
            before["embedding_model_id"],
        )
    elif kept.questions:
        _put_amid(kept, _newest(kept.members.all()))
    kept.owner_id = _as_noted(noted["before"])["owner_id"]
    kept.save(update_fields=["embedding_model", "vector", "question", "owner"])


def _still_asked(gone: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the merged gaps that were empty or still have a question left."""
    members = [key for row in gone for key in row["members"]]
    there = set(GapQuestion.objects.filter(pk__in=members).values_list("pk", flat=True))
    return [
        row
        for row in gone
        if not row["members"] or not there.isdisjoint(row["members"])
    ]


def _merged_now(noted: Mapping[str, Any], by: User) -> Gap:
    """Return the gap that stayed, locked.

    Raises:
        ChangedSinceError: The merged gaps were changed since.
    """
    after = noted["after"]
    try:
        (kept,) = _locked({after["id"]}, by)
    except (GapClosedError, GapNotFoundError) as error:
        raise ChangedSinceError(f"{error} Nothing is undone.") from error
    if Gap.objects.filter(pk__in=[row["id"] for row in noted["gone"]]).exists():
        raise ChangedSinceError("The gaps are split again already.")
    if kept.owner_id != after["owner_id"]:
        whom = person_name(kept.owner) if kept.owner else "nobody"
        raise ChangedSinceError(
            f"The gap was assigned to {whom} since; nothing is undone."
        )
    members = [key for row in noted["gone"] for key in row["members"]]
    elsewhere = GapQuestion.objects.filter(pk__in=members).exclude(gap=kept)
    if elsewhere.exists():
        raise ChangedSinceError(
            "Some of its questions were moved to another gap since; nothing is undone."
        )
    return kept


@transaction.atomic
def split(gap_id: int, *, by: User, question_ids: Collection[int]) -> Gap:
    """Move questions of a gap to a new gap, and return it.

    Args:
        question_ids: Keys of its `GapQuestion`s.

    Raises:
        InvalidGapError: None or all of its questions are chosen, or one is not in it.
        GapClosedError: It is not open.
    """
    (gap,) = _locked({gap_id}, by)
    members = gap.members.select_related("answer")
    chosen = list(members.visible_to(by).filter(pk__in=question_ids))
    rest = _newest(members.exclude(pk__in=question_ids))
    if not question_ids:
        raise InvalidGapError("No question is chosen; choose those to move.")
    if len(chosen) != len(set(question_ids)):
        raise InvalidGapError(
            f"Not all of the chosen questions are in gap {gap_id} now; choose again."
        )
    if not rest:
        raise InvalidGapError(
            f"All questions of gap {gap_id} are chosen; leave at least one of them."
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


def _newest(members: GapQuestionQuerySet) -> list[GapQuestion]:
    return list(members.select_related("answer").newest()[:_EMBEDDED])


def _put_amid(gap: Gap, members: Sequence[GapQuestion]) -> None:
    """Recompute a gap's centroid from `members`, without saving it.

    Its question is replaced if it is none of theirs.
    """
    readable = [each for each in members if each.answer.erased_at is None] or members
    texts = [each.answer.question for each in readable]
    model = active_model()
    vectors = get_embedder(model).encode(texts)
    gap.embedding_model = model
    gap.vector = moved(vectors[0], 0, vectors)
    if gap.question not in texts:
        gap.question = texts[most_central(vectors)]


def _locked(gap_ids: Collection[int], by: User) -> list[Gap]:
    # Gap finding holds the cursor while it places questions and relies on gaps staying.
    GapCursor.objects.get_or_create(pk=1)
    GapCursor.objects.select_for_update().get(pk=1)
    visible = Gap.objects.visible_to(by).select_related("knowledge_base", "owner")
    locked = visible.select_for_update(of=("self",)).order_by("pk")
    gaps = list(locked.filter(pk__in=gap_ids))
    for missing in sorted(set(gap_ids).difference(gap.pk for gap in gaps)):
        raise GapNotFoundError(f"There is no gap {missing}.")
    for gap in gaps:
        gap.knowledge_base.check_in_use()
        if gap.state != Gap.State.OPEN:
            raise GapClosedError(
                f"Gap {gap.pk} is {gap.get_state_display()}; reopen it first."
            )
    return gaps
