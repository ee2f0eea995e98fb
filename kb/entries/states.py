"""Changing an entry's state (verify, mark, retire, erase), and restoring a revision.

Each function is one transaction that writes the next revision with the entry.
"""

from django.contrib.auth.models import User
from django.db import transaction

from accounts.acting import unrestricted
from kb.conflicts.finding import outdate_conflicts
from kb.embedding.services import active_model, write_vectors
from kb.entries.models import Entry, Revision
from kb.exceptions import (
    EntryNotFoundError,
    RevisionNotFoundError,
    RevisionOfOthersError,
)

from .revisions import lock, mark, restore, retire, save, verify
from .services import edit_entry
from .values import EntryChanges, clean_reason


@transaction.atomic
def verify_entry(
    *, entry_id: int, by: User, expected_revision: int | None = None, reason: str = ""
) -> Entry:
    entry, number = lock(entry_id, expected_revision, by=by)
    default = verify(entry, by)
    save(entry, number=number + 1, author=by, reason=clean_reason(reason) or default)
    return entry


@transaction.atomic
def mark_for_review(*, entry_id: int, by: User, reason: str = "") -> Entry:
    entry, number = lock(entry_id, None, by=by)
    default = mark(entry)
    if default:
        kept = clean_reason(reason) or default
        save(entry, number=number + 1, author=by, reason=kept)
    return entry


@transaction.atomic
def retire_entry(
    *,
    entry_id: int,
    by: User | None,
    reason: str = "",
    expected_revision: int | None = None,
) -> Entry:
    """Withdraw an entry from all answers; it is kept for the answers that cite it."""
    entry, number = lock(entry_id, expected_revision, by=by)
    default = retire(entry)
    if default:
        kept = clean_reason(reason) or default
        save(entry, number=number + 1, author=by, reason=kept)
        outdate_conflicts(entry.pk)
    return entry


@transaction.atomic
def restore_entry(
    *,
    entry_id: int,
    by: User | None,
    reason: str = "",
    expected_revision: int | None = None,
) -> Entry:
    model = active_model(for_share=True)
    entry, number = lock(entry_id, expected_revision, by=by)
    before = entry.revisions.exclude(state=Entry.State.RETIRED).first()
    default = restore(entry, before.state if before else None)
    if default:
        kept = clean_reason(reason) or default
        save(entry, number=number + 1, author=by, reason=kept)
        write_vectors([entry], model=model)
    return entry


@transaction.atomic
def erase_entry(*, entry_id: int) -> None:
    """Delete an entry with its revisions, its vectors and its mention in answers.

    For content that must not be kept (a person's data), archived or not; outdated
    knowledge is retired instead.
    """
    entry = Entry.objects.locked().filter(pk=entry_id).first()
    if entry is None:
        raise EntryNotFoundError(f"There is no entry {entry_id}.")
    with unrestricted("an erased entry's history"):
        entry.delete()


@transaction.atomic
def restore_revision(
    *,
    entry_id: int,
    number: int,
    by: User | None,
    may_verify: bool,
    expected_revision: int | None = None,
    reason: str = "",
) -> Entry:
    """Restore the content of revision `number` as the entry's next revision.

    Question, text, language, expiry and place are restored; a place that no longer
    exists is not. Audience and owner stay: restoring must neither show people what has
    since been hidden from them, nor what was hidden from them then. Verification
    follows the rules of `edit_entry`. Nothing is written if nothing differs.

    Raises:
        RevisionNotFoundError: The entry has no such revision.
        RevisionOfOthersError: Not everyone who sees the entry may see the revision.
    """
    active_model(for_share=True)  # locked first everywhere
    entry, _ = lock(entry_id, None, by=by)
    revision = (
        Revision.objects.select_related(
            "audience", "document", "section", "section__document"
        )
        .filter(entry_id=entry_id, number=number)
        .first()
    )
    if revision is None:
        raise RevisionNotFoundError(
            f"Entry {entry_id} has no revision {number}; name one of its revisions."
        )
    _check_audience(entry, revision)
    return edit_entry(
        entry_id=entry_id,
        author=by,
        may_verify=may_verify,
        expected_revision=expected_revision,
        reason=clean_reason(reason) or f"Restored revision {number}.",
        **_said(revision),
    )


def _check_audience(entry: Entry, revision: Revision) -> None:
    audience = revision.audience
    if audience is None:
        raise RevisionOfOthersError(
            f"The audience of revision {revision.number} is deleted or unknown, so it "
            "is not clear who may read it; copy what may be read into the entry by hand."
        )
    if not audience.includes(entry.audience):
        raise RevisionOfOthersError(
            f"Revision {revision.number} had the audience {audience.slug!r}, and not "
            f"all of {entry.audience.slug!r}, who see entry {entry.pk} now, belong to it; "
            f"give the entry the audience {audience.slug!r} first."
        )


def _said(revision: Revision) -> EntryChanges:
    said: EntryChanges = {
        "question": revision.question,
        "text": revision.text,
        "language": revision.language,
        "valid_until": revision.valid_until,
    }
    # A deleted document leaves its id in the revision but no row.
    if revision.document is not None or revision.document_id is None:
        said["document"] = revision.document
        is_there = revision.section and revision.section.document == revision.document
        said["section"] = revision.section if is_there else None
    return said
