"""Steps shared by all changes of an entry: lock, revision, verification, proposal."""

from collections.abc import Collection, Sequence
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Max
from django.utils import timezone

from accounts.roles import Role, refuse_elsewhere
from kb.enrichment.models import Proposal
from kb.entries.models import Entry, Revision
from kb.exceptions import (
    EntryExpiredError,
    EntryNotFoundError,
    EntryRetiredError,
    RevisionConflictError,
)

from .values import REVISED, UNVERIFIED_CONFIDENCE

KEPT = [
    field.attname for field in Revision._meta.concrete_fields if field.name in REVISED
]


def update_proposal(entry: Entry, *, by: User | None, reason: str) -> None:
    """Record a person's decision about an enriched entry on its proposal.

    Does nothing while the entry is still proposed, or if it was decided before.
    """
    if entry.origin != Entry.Origin.ENRICHED or entry.state == Entry.State.PROPOSED:
        return
    proposal = Proposal.objects.undecided().filter(entry=entry).first()
    if proposal is None:
        return
    if entry.state == Entry.State.RETIRED:
        proposal.state = Proposal.State.REJECTED
    elif (entry.text, entry.question) in (
        (proposal.sentence, ""),
        (proposal.answer, proposal.question),
    ):
        proposal.state = Proposal.State.APPROVED
    else:
        proposal.state = Proposal.State.EDITED
    proposal.decided_by = by
    proposal.decided_at = timezone.now()
    proposal.reason = reason
    proposal.save(update_fields=["state", "decided_by", "decided_at", "reason"])


def lock_all(entry_ids: Collection[int]) -> tuple[Entry, ...]:
    rows = Entry.objects.locked().select_related("knowledge_base")
    return tuple(rows.filter(pk__in=entry_ids).order_by("pk"))


def lock(
    entry_id: int,
    expected_revision: int | None,
    *,
    by: User | None,
    least: Role = Role.CURATOR,
) -> tuple[Entry, int]:
    """Return the entry, locked until the transaction ends, and its revision number."""
    entry = (
        Entry.objects.locked()
        .select_related("knowledge_base", "document", "section", "audience")
        .filter(pk=entry_id)
        .first()
    )
    if entry is None:
        raise EntryNotFoundError(f"There is no entry {entry_id}.")
    refuse_elsewhere(by, entry.knowledge_base_id, least)
    entry.knowledge_base.check_in_use()
    number = (
        entry.revisions.order_by("-number").values_list("number", flat=True).first()
    ) or 0
    if expected_revision is not None and expected_revision != number:
        raise RevisionConflictError(
            f"Entry {entry_id} is at revision {number}, your change was based on "
            f"revision {expected_revision}; read it again and repeat the change."
        )
    return entry, number


def save(entry: Entry, *, number: int, author: User | None, reason: str) -> None:
    entry.save()
    make_revision(entry, number=number, author=author, reason=reason).save()
    update_proposal(entry, by=author, reason=reason)


def record(entries: Sequence[Entry], *, author: User | None, reason: str) -> None:
    """Write the saved state of each locked entry as its next revision."""
    rows = Revision.objects.filter(entry__in=entries).order_by()
    newest = dict(rows.values_list("entry").annotate(newest=Max("number")))
    Revision.objects.bulk_create(
        [
            make_revision(
                entry, number=newest.get(entry.pk, 0) + 1, author=author, reason=reason
            )
            for entry in entries
        ],
        batch_size=500,
    )
    for entry in entries:
        update_proposal(entry, by=author, reason=reason)


def make_revision(
    entry: Entry, *, number: int, author: User | None, reason: str
) -> Revision:
    kept = {name: getattr(entry, name) for name in KEPT}
    return Revision(entry=entry, number=number, author=author, reason=reason, **kept)


def verify(entry: Entry, by: User, *, at: datetime | None = None) -> str:
    refuse_retired(entry)
    refuse_expired(entry, at or timezone.now())
    again = entry.state == Entry.State.VERIFIED
    set_verified(entry, by, at=at)
    return "Verified again." if again else "Verified."


def mark(entry: Entry) -> str:
    """Set an entry to needs_review without saving; return "" if it already is."""
    refuse_retired(entry)
    if entry.state == Entry.State.NEEDS_REVIEW:
        return ""
    withdraw_verification(entry, state=Entry.State.NEEDS_REVIEW)
    return "Marked for review."


def retire(entry: Entry) -> str:
    """Withdraw an entry from all answers without saving; return "" if it already is."""
    if entry.state == Entry.State.RETIRED:
        return ""
    entry.state = Entry.State.RETIRED
    return "Retired."


def restore(entry: Entry, state: str | None) -> str:
    """Undo a retirement to `state` without saving; return "" if it is not retired."""
    if entry.state != Entry.State.RETIRED:
        return ""
    entry.state = state or Entry.State.NEEDS_REVIEW
    if entry.state == Entry.State.PROPOSED:
        # A person wants it now, so it no longer counts as proposed by the model.
        entry.state = Entry.State.IN_REVIEW
    return "Restored."


def set_verified(entry: Entry, by: User, *, at: datetime | None = None) -> None:
    entry.state = Entry.State.VERIFIED
    entry.confidence = 1.0
    entry.verified_by = by
    entry.verified_at = at or timezone.now()


def withdraw_verification(entry: Entry, *, state: str) -> None:
    """Withdraw a verification and its confidence, without saving."""
    if entry.state == Entry.State.VERIFIED:
        entry.confidence = UNVERIFIED_CONFIDENCE
    entry.state = state
    entry.verified_by = None
    entry.verified_at = None


def refuse_retired(entry: Entry) -> None:
    if entry.state == Entry.State.RETIRED:
        raise EntryRetiredError(f"Entry {entry.pk} is retired; restore it first.")


def refuse_expired(entry: Entry, at: datetime) -> None:
    """Raise if the entry has expired: no answer would use it, verified or not."""
    if entry.valid_until and entry.has_expired(at):
        day = timezone.localtime(entry.valid_until)
        raise EntryExpiredError(
            f"Entry {entry.pk} was valid until {day:%Y-%m-%d}; give it a later end of "
            "validity, or retire it."
        )
