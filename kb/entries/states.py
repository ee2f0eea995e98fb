"""The states of an entry (verified, marked, retired, erased), and restoring a revision.

Each function is one transaction that writes the next revision with the entry.
"""

from django.contrib.auth.models import User
from django.db import transaction

from kb.conflicts.finding import outdate_conflicts
from kb.embedding.services import active_model, write_vectors
from kb.entries.models import Entry, Revision
from kb.exceptions import RevisionNotFoundError

from .revisions import lock, mark, restore, retire, save, verify
from .services import edit_entry
from .values import EntryChanges, clean_reason


@transaction.atomic
def verify_entry(
    *, entry_id: int, by: User, expected_revision: int | None = None, reason: str = ""
) -> Entry:
    entry, number = lock(entry_id, expected_revision)
    default = verify(entry, by)
    save(entry, number=number + 1, author=by, reason=clean_reason(reason) or default)
    return entry


@transaction.atomic
def mark_for_review(
    *, entry_id: int, by: User, reason: str = "", expected_revision: int | None = None
) -> Entry:
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
    """Take an entry out of every answer; it stays for the answers that cite it."""
    entry, number = lock(entry_id, expected_revision)
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
    """
    entry, _ = lock(entry_id, None)
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
    """Let an entry say again what it said at revision `number`, as its next revision.

    Question, text, language, expiry and place go back; a place that is no more is left
    as it is. Who may see the entry and who looks after it stay: going back in time must
    not show to more people what was since kept from them. Verification follows the rules
    of `edit_entry`. Nothing is written where nothing differs.
    """
    # `edit_entry` reports an entry that does not exist.
    revision = (
        Revision.objects.select_related("document", "section", "section__document")
        .filter(entry_id=entry_id, number=number)
        .first()
    )
    if revision is None and Entry.objects.filter(pk=entry_id).exists():
        raise RevisionNotFoundError(
            f"Entry {entry_id} has no revision {number}; name one of its revisions."
        )
    return edit_entry(
        entry_id=entry_id,
        author=by,
        may_verify=may_verify,
        expected_revision=expected_revision,
        reason=clean_reason(reason) or f"Restored revision {number}.",
        **({} if revision is None else _said(revision)),
    )


def _said(revision: Revision) -> EntryChanges:
    said: EntryChanges = {
        "question": revision.question,
        "text": revision.text,
        "language": revision.language,
        "valid_until": revision.valid_until,
    }
    # A document that is gone leaves its number in the revision and no row.
    if revision.document is not None or revision.document_id is None:
        said["document"] = revision.document
        is_there = revision.section and revision.section.document == revision.document
        said["section"] = revision.section if is_there else None
    return said
