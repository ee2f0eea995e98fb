"""Creating and changing entries with revision and vector, in one transaction each.

Locks are taken in the same order everywhere: the active model (shared), then entries.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from accounts.roles import Role
from kb.conflicts.finding import APART, outdate_conflicts, refresh_conflicts
from kb.documents.models import check_writable
from kb.embedding.services import PreparedVectors, active_model, write_vectors
from kb.entries.models import Entry, Revision
from kb.exceptions import InvalidKnowledgeError

from . import revisions
from .values import (
    NEEDS_NEW_VERIFICATION,
    UNVERIFIED_CONFIDENCE,
    EntryChanges,
    NewEntry,
    check_confidence,
    check_place,
    check_state,
    checked,
    clean_reason,
)


def create_entry(
    *, author: User | None, least: Role = Role.CURATOR, **new: Unpack[NewEntry]
) -> Entry:
    """Create an entry with its first revision and its vectors."""
    return create_entries([new], author=author, least=least)[0]


@transaction.atomic
def create_entries(
    new_entries: Sequence[NewEntry],
    *,
    author: User | None,
    prepared: PreparedVectors | None = None,
    least: Role = Role.CURATOR,
) -> tuple[Entry, ...]:
    """Create many entries as `create_entry` does, in one transaction and in bulk."""
    for base in {new["knowledge_base"].pk for new in new_entries}:
        check_writable(author, base, least)
    entries = [_build(new, author=author) for new in new_entries]
    reasons = [clean_reason(new.get("reason", "")) for new in new_entries]
    model = active_model(for_share=True)
    Entry.objects.bulk_create(entries, batch_size=500)
    Revision.objects.bulk_create(
        [
            revisions.make_revision(entry, number=1, author=author, reason=reason)
            for entry, reason in zip(entries, reasons, strict=True)
        ],
        batch_size=500,
    )
    write_vectors(entries, model=model, prepared=prepared)
    return tuple(entries)


@transaction.atomic
def edit_entry(
    *,
    entry_id: int,
    author: User | None,
    may_verify: bool,
    expected_revision: int | None = None,
    reason: str = "",
    prepared: PreparedVectors | None = None,
    least: Role = Role.CURATOR,
    **changes: Unpack[EntryChanges],
) -> Entry:
    """Change an entry and write its new content as its next revision.

    A changed text, question or expiry of a verified entry requires a new verification.
    With `may_verify` it is verified by `author`, unless the entry has expired according
    to its new content; otherwise it goes back to needs_review with
    `UNVERIFIED_CONFIDENCE`. Nothing is written if nothing changed.
    """
    model = active_model(for_share=True)
    entry, number = revisions.lock(entry_id, expected_revision, by=author, least=least)
    revisions.refuse_retired(entry)
    changed = _apply(entry, changes)
    if "document" in changes or "section" in changes:
        _settle_place(entry, changes)
    if not changed:
        return entry
    _settle_verification(entry, changed, changes, author if may_verify else None)
    revisions.save(
        entry,
        number=number + 1,
        author=author,
        reason=clean_reason(reason) or f"Changed {', '.join(sorted(changed))}.",
    )
    if changed & {"text", "question", "document", "section", "audience"}:
        write_vectors([entry], model=model, prepared=prepared)
    if changed & {"text", "question"}:
        refresh_conflicts(entry.pk)
    if "state" in changed and entry.state in APART:
        outdate_conflicts(entry.pk)
    return entry


def _build(new: NewEntry, *, author: User | None) -> Entry:
    values: dict[str, Any] = {**new}
    values.pop("reason", None)
    verify, state = values.pop("verify", False), values.pop("state", Entry.State.DRAFT)
    confidence = values.pop("confidence", UNVERIFIED_CONFIDENCE)
    if section := values.get("section"):
        values["document"] = values.get("document") or section.document
    document = values.get("document")
    values["audience"] = new["audience"] or (document.audience if document else None)
    if values["audience"] is None:
        raise InvalidKnowledgeError(
            "audience", "audience is missing; name one, or a document that has one."
        )
    values["language"] = values.get("language") or new["knowledge_base"].language
    entry = Entry(**checked(values))
    check_place(entry)
    if verify:
        if author is None:
            raise InvalidKnowledgeError(
                "verify", "verify needs an author: only a person can verify."
            )
        revisions.set_verified(entry, author)
        return entry
    # Only entries written by a model are ever proposed.
    is_proposed = (entry.origin, state) == (Entry.Origin.ENRICHED, Entry.State.PROPOSED)
    entry.state = state if is_proposed else check_state(state)
    entry.confidence = check_confidence(confidence)
    return entry


def _apply(entry: Entry, changes: Mapping[str, Any]) -> set[str]:
    """Set all fields except state and confidence; return the names of all changes."""
    values = checked(changes)
    changed = {name for name, value in values.items() if getattr(entry, name) != value}
    for name in changed - {"state", "confidence"}:
        setattr(entry, name, values[name])
    return changed


def _settle_place(entry: Entry, changes: EntryChanges) -> None:
    if "document" not in changes and entry.section is not None:
        entry.document = entry.section.document
    elif "section" not in changes and (
        entry.section is not None and entry.section.document_id != entry.document_id
    ):
        entry.section = None
    check_place(entry)


def _settle_verification(
    entry: Entry, changed: set[str], changes: EntryChanges, verifier: User | None
) -> None:
    was_verified = entry.state == Entry.State.VERIFIED
    if "state" in changed:
        revisions.withdraw_verification(entry, state=check_state(changes["state"]))
    elif was_verified and changed & NEEDS_NEW_VERIFICATION:
        # An expired entry answers nothing, so an edit does not confirm it in passing.
        if verifier is not None and not entry.has_expired(timezone.now()):
            revisions.set_verified(entry, verifier)
        else:
            revisions.withdraw_verification(entry, state=Entry.State.NEEDS_REVIEW)
    if "confidence" not in changed:
        return
    if entry.state == Entry.State.VERIFIED:
        raise InvalidKnowledgeError(
            "confidence",
            f"confidence {changes['confidence']} is not allowed for a verified entry, "
            "which has 1; change its state too.",
        )
    entry.confidence = check_confidence(changes["confidence"])
