"""Taking back what was done to entries: their words, states, owners, due dates, conflicts.

What was done is noted as the revisions before and after it, with what no revision keeps.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from accounts.exceptions import ForbiddenError
from accounts.people import person_name
from accounts.roles import Role, has_role_in
from accounts.undo import ChangedSinceError, undoes
from kb.audiences.models import Audience
from kb.conflicts.background import enqueue_entries
from kb.conflicts.finding import refresh_conflicts
from kb.conflicts.models import Conflict
from kb.embedding.models import EmbeddingModel
from kb.embedding.services import active_model, write_vectors
from kb.enrichment.models import Proposal
from kb.entries.models import Entry, Revision
from kb.entries.revisions import KEPT, lock_all, save
from kb.entries.values import REASON_LIMIT
from kb.exceptions import EntryNotFoundError
from kb.upkeep.models import Upkeep

KIND = "kb.entries"
Done = TypeVar("Done")

_DATES = ("waiting_since", "flagged_since", "doubted_since", "postponed_until")
_HAPPENED = {
    "flagged_since": "flagged",
    "doubted_since": "voted down",
    "postponed_until": "postponed",
    "waiting_since": "sent to review",
}


@transaction.atomic
def undoable(
    change: Callable[[], Done], *entry_ids: int, by: User
) -> tuple[Done, Mapping[str, Any]]:
    """Make a change of these entries; return what it returns, and what takes it back.

    Conflicts with what `by` may not see are left out, for `by` may read what is noted: a
    worker compares again.
    """
    active_model(for_share=True)  # locked first everywhere
    lock_all(entry_ids)
    conflicts = Conflict.objects.open().of_entry(*entry_ids).visible_to(by)
    open_before = set(conflicts.values_list("pk", flat=True))
    proposals = Proposal.objects.undecided().filter(entry__in=entry_ids)
    undecided = set(proposals.values_list("pk", flat=True))
    before = _states(*entry_ids)
    done = change()
    closed = Conflict.objects.filter(pk__in=open_before).exclude(pk__in=conflicts)
    return done, {
        "before": before,
        "after": _states(*entry_ids),
        "conflicts": {row.pk: _decision(row) for row in closed},
        "proposals": list(undecided.difference(proposals.values_list("pk", flat=True))),
    }


@undoes(KIND)
@transaction.atomic
def undo_change(noted: Mapping[str, Any], by: User) -> None:
    """Let entries and their conflicts be as they were before `undoable`.

    Raises:
        ChangedSinceError: Somebody changed one of them since.
    """
    model = active_model(for_share=True)
    entries = lock_all([int(key) for key in noted["before"]])
    seen = Entry.objects.visible_to(by).filter(pk__in=[entry.pk for entry in entries])
    if not len(entries) == len(noted["before"]) == seen.count():
        raise EntryNotFoundError("An entry is gone, or you may not see it any more.")
    for entry in entries:
        if not has_role_in(by, Role.CURATOR, entry.knowledge_base_id):
            raise ForbiddenError("Only a curator can change an entry.")
        _refuse_changed(entry, noted["after"][str(entry.pk)], by)
    closed = Conflict.objects.select_for_update(no_key=True).order_by("pk")
    for row in closed.filter(pk__in=noted["conflicts"]):
        if _decision(row) != noted["conflicts"][str(row.pk)]:
            raise ChangedSinceError(
                f"Conflict {row.pk} is {row.get_state_display()} since; nothing is undone."
            )
    closed.filter(pk__in=noted["conflicts"]).update(
        state=Conflict.State.OPEN,
        kept=None,
        resolved_by=None,
        resolved_at=None,
        reason="",
    )
    for entry in entries:
        key = str(entry.pk)
        _restore(entry, noted["before"][key], noted["after"][key], by, model)
    if not Audience.objects.all().are_all_visible_to(by):
        enqueue_entries([entry.pk for entry in entries])
    Proposal.objects.filter(pk__in=noted["proposals"]).update(
        state=Proposal.State.PROPOSED, decided_by=None, decided_at=None, reason=""
    )


def _states(*entry_ids: int) -> dict[int, dict[str, Any]]:
    revisions = Revision.objects.filter(entry__in=entry_ids).order_by()
    numbers = dict(revisions.values_list("entry").annotate(newest=Max("number")))
    return {
        row.pk: {
            "revision": numbers[row.pk],
            "postponed_by_id": row.postponed_by_id,
            **{name: _noted(getattr(row, name)) for name in _DATES},
        }
        for row in Upkeep.objects.filter(pk__in=entry_ids)
    }


def _noted(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _decision(row: Conflict) -> list[str | None]:
    return [row.state, _noted(row.resolved_at)]


def _refuse_changed(entry: Entry, after: Mapping[str, Any], by: User) -> None:
    now = _states(entry.pk)[entry.pk]
    if now["revision"] != after["revision"]:
        since = Revision.objects.visible_to(by).filter(entry=entry)
        newest = since.select_related("author").order_by("-number").first()
        raise ChangedSinceError(
            f"Entry {entry.pk} was changed since{_said(newest)}; nothing is undone."
        )
    for name, happened in _HAPPENED.items():
        if now[name] != after[name]:
            raise ChangedSinceError(
                f"Entry {entry.pk} was {happened} since; nothing is undone."
            )


def _said(newest: Revision | None) -> str:
    if newest is None:
        return ""
    by = f" by {person_name(newest.author)}" if newest.author else ""
    at = timezone.localtime(newest.created_at)
    why = f' ("{newest.reason}")' if newest.reason else ""
    return f"{by} on {at:%Y-%m-%d %H:%M}{why}"


def _restore(
    entry: Entry,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    by: User,
    model: EmbeddingModel,
) -> None:
    if before["revision"] != after["revision"]:
        numbers = [before["revision"], after["revision"]]
        rows = {row.number: row for row in entry.revisions.filter(number__in=numbers)}
        then, undone = (rows[number] for number in numbers)
        for name in KEPT:
            setattr(entry, name, getattr(then, name))
        reason = f"Undone: {undone.reason}"[:REASON_LIMIT]
        save(entry, number=undone.number + 1, author=by, reason=reason)
        write_vectors([entry], model=model)
        refresh_conflicts(entry.pk)
    dates = {
        name: before[name] and datetime.fromisoformat(before[name]) for name in _DATES
    }
    rows_of = Upkeep.objects.filter(pk=entry.pk)
    rows_of.update(**dates, postponed_by_id=before["postponed_by_id"])
