"""Going back to what an entry said before, as a change like any other."""

from django.contrib.auth.models import User
from django.db import transaction

from kb.exceptions import RevisionNotFoundError
from kb.models import Entry, Revision

from .entries import EntryChanges, edit_entry
from .entry_values import clean_reason


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

    Raises:
        EntryNotFoundError: There is no such entry.
        RevisionNotFoundError: It has no such revision.
        EntryRetiredError: It is retired.
        RevisionConflictError: It has another revision than `expected_revision`.
    """
    # One of an entry that is not there is told by `edit_entry`.
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
