"""Reading the inbox, assigning its items and snoozing them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.people import by_name, person_name
from accounts.prepared import lock_until_commit
from accounts.roles import Role, has_role_somewhere, holders
from accounts.undo import ChangedSinceError
from kb.documents.models import KnowledgeBase
from kb.upkeep.models import Flag
from kb.upkeep.services import flag_outdated
from qa.exceptions import InboxItemNotFoundError, InvalidInboxError
from qa.gaps import escalations
from qa.gaps import services as gaps
from qa.gaps.notices import notify_flagged
from qa.inbox.items import Item, described
from qa.inbox.models import InboxMark, Kind
from qa.inbox.waiting import (
    Scope,
    counted,
    kinds_of,
    reader_of,
    together,
    waiting,
    waiting_by_kind,
)
from qa.reviews import services as reviews

COUNTED = 100
"""The maximum count of each kind; this number means at least as many."""
MAX_SNOOZE = timedelta(days=365)
MAX_LISTED = 1_000
"""The number of items that can be paged through; later ones are found by kind."""
_OFFERED = 200


@dataclass(frozen=True, slots=True)
class InboxPage:
    """A page of the inbox, and how many of each kind wait, at most `COUNTED`.

    `has_more` is whether another page follows.
    """

    items: tuple[Item, ...]
    has_more: bool
    counts: Mapping[Kind, int]


def count_waiting(user: User) -> Mapping[Kind, int]:
    """Return how many of each of the user's kinds wait, at most `COUNTED` (one query).

    Two more read the user's tags, and their role unless it is cached.
    """
    reader = reader_of(user, timezone.now())
    return _count(waiting_by_kind(reader, Scope.WAITING))


def read_inbox(
    user: User,
    *,
    scope: Scope = Scope.WAITING,
    kind: Kind | None = None,
    base: KnowledgeBase | None = None,
    page: int = 1,
    size: int,
    at: datetime | None = None,
) -> InboxPage:
    """Return a page of the items that the user may see and act on.

    The user's own come first, then escalations, imports, reviews, conflicts, due
    entries, proposals and gaps; each kind from the longest waiting.
    """
    reader = reader_of(user, at or timezone.now())
    by_kind = waiting_by_kind(reader, scope)
    if base is not None:
        by_kind = {
            each: rows.filter(inbox_base=base.pk) for each, rows in by_kind.items()
        }
    counts = _count(by_kind)
    chosen = [rows for each, rows in by_kind.items() if kind in (None, each)]
    end = page * size
    if not chosen or end > MAX_LISTED:
        return InboxPage((), has_more=False, counts=counts)
    rows = list(together(chosen, limit=end + 1)[end - size : end + 1])
    items = described(rows[:size], reader)
    return InboxPage(items, has_more=len(rows) > size, counts=counts)


def _count(by_kind: Mapping[Kind, QuerySet[Any]]) -> Mapping[Kind, int]:
    found = Counter(kind for (kind,) in counted(by_kind.values(), limit=COUNTED))
    return {kind: found[kind] for kind in by_kind}


@transaction.atomic
def flag_entry(
    *, entry_id: int, by: User, reasons: Sequence[str] = (), note: str = ""
) -> Flag:
    """Make an entry due as wrong or outdated, and notify those responsible for it."""
    flag = flag_outdated(entry_id=entry_id, by=by, reasons=reasons, note=note)
    notify_flagged(flag)
    return flag


def assignable() -> list[User]:
    """Return the users to whom items can be assigned, by name."""
    found = holders(Role.SME, somewhere=True).filter(is_staff=True)
    return list(by_name(found)[:_OFFERED])


@transaction.atomic
def assign(
    kind: Kind, subject: int, *, to: User | None, by: User, expected: str | None = None
) -> User | None:
    """Assign an item to a person, or with None to nobody; return the last assignee.

    Args:
        expected: The user name of the current assignee, "" for nobody; None is not
            checked.

    Raises:
        InboxItemNotFoundError: `by` has no such item.
        InvalidInboxError: `to` may not see it or may not handle it.
        ChangedSinceError: The current assignee is not `expected`.
    """
    key = _find(kind, subject, by)
    before = User.objects.filter(pk=key).first() if key else None
    if expected not in (None, before.get_username() if before else ""):
        now = f"to {person_name(before)}" if before else "to nobody"
        raise ChangedSinceError(f"It has since been assigned {now}; nothing is undone.")
    if to is not None and not _may_deal_with(kind, subject, to):
        raise InvalidInboxError(
            f"{to} may not see or may not handle this {kind.label.lower()}; "
            "choose somebody else, or change their role or audiences first."
        )
    if kind == Kind.ESCALATION:
        escalations.assign(subject, to=to, by=by)
    elif kind == Kind.REVIEW:
        reviews.assign(subject, to=to, by=by)
    elif kind == Kind.GAP:
        gaps.assign(subject, owner=to, by=by)
    else:
        _mark_assigned(kind, subject, to, by)
    return before


def _mark_assigned(kind: Kind, subject: int, to: User | None, by: User) -> None:
    lock_until_commit(f"inbox {kind} {subject}")
    marks = InboxMark.objects.of_subject(kind, subject)
    before = marks.filter(is_assigned=True)
    before.filter(snoozed_until__isnull=True).delete()
    before.update(is_assigned=False)
    if to is not None:
        InboxMark.objects.update_or_create(
            user=to,
            kind=kind,
            subject=subject,
            defaults={"is_assigned": True, "changed_by": by},
        )


@transaction.atomic
def snooze(kind: Kind, subject: int, *, until: datetime | None, by: User) -> None:
    """Hide an item from the user's own inbox until a time; None brings it back.

    Others see it as before.

    Raises:
        InboxItemNotFoundError: `by` has no such item.
        InvalidInboxError: The time is past, or more than a year away.
    """
    _find(kind, subject, by)
    own = InboxMark.objects.of_subject(kind, subject).filter(user=by)
    if until is None:
        own.filter(is_assigned=False).delete()
        own.update(snoozed_until=None)
        return
    now = timezone.now()
    if not now < until <= now + MAX_SNOOZE:
        raise InvalidInboxError(
            f"{until:%Y-%m-%d} is not within the next {MAX_SNOOZE.days} days; give one "
            "that is."
        )
    InboxMark.objects.update_or_create(
        user=by,
        kind=kind,
        subject=subject,
        defaults={"snoozed_until": until, "changed_by": by},
    )


def _find(kind: Kind, subject: int, by: User) -> int | None:
    """Return the id of an item's assignee, if any; raise unless `by` may handle it."""
    rows = _dealt_with(kind, subject, by)
    found = list(rows.values_list("inbox_assignee")) if rows is not None else []
    if not found:
        raise InboxItemNotFoundError(
            f"There is no {kind.label.lower()} {subject} that waits for you."
        )
    assignee: int | None = found[0][0]
    return assignee


def _may_deal_with(kind: Kind, subject: int, user: User) -> bool:
    rows = _dealt_with(kind, subject, user)
    return rows is not None and rows.exists()


def _dealt_with(kind: Kind, subject: int, user: User) -> QuerySet[Any] | None:
    """Return the item's row if the user may handle it; None if not their kind."""
    if not has_role_somewhere(user, Role.SME):
        return None
    reader = reader_of(user, timezone.now())
    if kind not in kinds_of(reader):
        return None
    return waiting(kind, reader, scope=None).filter(pk=subject)
