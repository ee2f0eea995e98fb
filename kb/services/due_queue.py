"""What is due for review, as a person may see it: pages of the queue and its sizes."""

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User

from kb.due import Place, Reason
from kb.models import Entry, EntryQuerySet

COUNTED = 1_000
"""How far sizes are counted."""


@dataclass(frozen=True, slots=True)
class QueuePage:
    """Some of what is due, the first to look at first.

    Attributes:
        entries: Each with its `upkeep`, owner, verifier and `revision_number`.
        following: Where the next page begins; None for the last.
    """

    entries: tuple[Entry, ...]
    following: Place | None


def due_entries(
    user: User, *, at: datetime, mine: bool = False, reason: Reason | None = None
) -> EntryQuerySet:
    """Return what `user` may see and is due at `at`, in the order of the queue.

    Args:
        mine: Only what `user` owns.
        reason: Only what is due for it, among others.
    """
    entries = Entry.objects.visible_to(user).due(at)
    if mine:
        entries = entries.filter(owner=user)
    if reason is not None:
        entries = entries.due_for(reason, at)
    return entries.in_queue_order()


def read_page(entries: EntryQuerySet, *, size: int, after: Place | None) -> QueuePage:
    """Return the `size` entries of the queue that stand behind `after`."""
    if after is not None:
        entries = entries.after(after)
    rows = entries.with_revision_number().select_related(
        "upkeep", "owner", "verified_by", "knowledge_base", "audience",
        "document", "section", "product_line", "line_of_business",
    )  # fmt: skip
    found = tuple(rows.defer("search_vector")[: size + 1])
    page = found[:size]
    following = None
    if len(found) > size:
        kept = page[-1].upkeep
        following = Place(kept.uses, kept.due_at, kept.entry_id)
    return QueuePage(page, following)


def sizes(user: User, *, at: datetime, mine: bool) -> dict[Reason, int]:
    """Return how many are due for each reason; what is `COUNTED` may be more."""
    return {
        reason: due_entries(user, at=at, mine=mine, reason=reason)
        .order_by()[:COUNTED]
        .count()
        for reason in Reason
    }
