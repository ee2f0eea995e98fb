"""The states of an entry: verified, marked for review, retired, restored, erased.

Each function is one transaction that writes the next revision with the entry.
"""

from django.contrib.auth.models import User
from django.db import transaction

from kb.embedding import active_model
from kb.models import Entry

from .conflict_finding import outdate_conflicts_of
from .entry_revisions import lock, mark, restore, retire, save, verify
from .entry_values import clean_reason
from .vectors import write_vectors


@transaction.atomic
def verify_entry(
    *, entry_id: int, by: User, expected_revision: int | None = None, reason: str = ""
) -> Entry:
    """Vouch for an entry as it stands: confidence 1; again for one that is verified.

    Raises:
        EntryNotFoundError: There is no such entry.
        EntryRetiredError: It is retired.
        RevisionConflictError: It has another revision than `expected_revision`.
    """
    entry, number = lock(entry_id, expected_revision)
    default = verify(entry, by)
    save(entry, number=number + 1, author=by, reason=clean_reason(reason) or default)
    return entry


@transaction.atomic
def mark_for_review(
    *, entry_id: int, by: User, reason: str = "", expected_revision: int | None = None
) -> Entry:
    """Put an entry into needs_review; a verified one is no longer certain.

    Raises:
        EntryNotFoundError: There is no such entry.
        EntryRetiredError: It is retired.
        RevisionConflictError: It has another revision than `expected_revision`.
    """
    entry, number = lock(entry_id, expected_revision)
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
    """Take an entry out of every answer; it stays for the answers that cite it.

    Retiring a retired entry changes nothing.

    Raises:
        EntryNotFoundError: There is no such entry.
        RevisionConflictError: It has another revision than `expected_revision`.
    """
    entry, number = lock(entry_id, expected_revision)
    default = retire(entry)
    if default:
        kept = clean_reason(reason) or default
        save(entry, number=number + 1, author=by, reason=kept)
        outdate_conflicts_of(entry.pk)
    return entry


@transaction.atomic
def restore_entry(
    *,
    entry_id: int,
    by: User | None,
    reason: str = "",
    expected_revision: int | None = None,
) -> Entry:
    """Undo a retirement: the entry stands again as it did before it.

    Raises:
        EntryNotFoundError: There is no such entry.
        RevisionConflictError: It has another revision than `expected_revision`.
    """
    model = active_model(for_share=True)
    entry, number = lock(entry_id, expected_revision)
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

    For what must not be kept (a person's data); knowledge that is out of date is retired.

    Raises:
        EntryNotFoundError: There is no such entry.
    """
    entry, _ = lock(entry_id, None)
    entry.delete()
