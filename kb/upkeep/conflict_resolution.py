"""Resolving a conflict: merge, keep both, or let one entry override the other.

Each function is one transaction. Locks are taken in the order of `entries`: the active
model, the entries by id, then the conflict.
"""

from typing import Unpack

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from accounts.roles import Role, has_role_in
from kb.audiences.models import Audience
from kb.conflicts.background import enqueue_entries
from kb.conflicts.finding import contradicted, find_entry_conflicts, other_entry
from kb.conflicts.models import Conflict
from kb.documents.models import check_writable
from kb.embedding.services import active_model
from kb.entries.models import Entry
from kb.entries.revisions import lock_all
from kb.entries.services import edit_entry
from kb.entries.states import mark_for_review, retire_entry, verify_entry
from kb.entries.values import REASON_LIMIT, EntryChanges
from kb.exceptions import (
    ConflictNotFoundError,
    ConflictResolvedError,
    InvalidKnowledgeError,
)
from kb.text.cleaning import clean_line

ACTIONS = ("merge", "keep_both", "override", "retire_other")


@transaction.atomic
def merge_conflict(
    *, conflict_id: int, keep: int, by: User, reason: str = "", text: str = ""
) -> Conflict:
    """Keep one of two entries and retire the other with a note.

    `text` replaces the text of the kept entry, "" leaves it. A verified entry stays
    verified if `by` may verify.
    """
    conflict, other = _lock_pair(conflict_id, keep, by)
    note = _clean(reason)
    if text.strip():
        edit_entry(
            entry_id=keep,
            author=by,
            may_verify=has_role_in(by, Role.CURATOR, conflict.first.knowledge_base_id),
            reason=note or f"Merged with entry {other}.",
            text=text,
        )
    retire_entry(entry_id=other, by=by, reason=note or f"Merged into entry {keep}.")
    return _close(conflict, Conflict.State.MERGED, by, note, kept=keep)


@transaction.atomic
def keep_both(*, conflict_id: int, by: User, reason: str) -> Conflict:
    """Declare both entries right; the conflict is not reopened until a text changes."""
    conflict = _lock(conflict_id, by)
    return _close(conflict, Conflict.State.KEPT, by, _clean(reason, required=True))


@transaction.atomic
def override_conflict(
    *, conflict_id: int, keep: int, by: User, reason: str, retire: bool = False
) -> Conflict:
    """Declare one entry right; the other is sent to review, or retired.

    The right one is verified if it needed a review.
    """
    conflict, other = _lock_pair(conflict_id, keep, by)
    note = _clean(reason, required=True)
    change = retire_entry if retire else mark_for_review
    change(
        entry_id=other, by=by, reason=f"Entry {keep} is right: {note}"[:REASON_LIMIT]
    )
    if Entry.objects.filter(pk=keep, state=Entry.State.NEEDS_REVIEW).exists():
        verify_entry(entry_id=keep, by=by, reason=note)
    return _close(conflict, Conflict.State.OVERRIDDEN, by, note, kept=keep)


def resolve_conflict(
    *,
    conflict_id: int,
    action: str,
    keep: int | None,
    by: User,
    reason: str,
    text: str = "",
) -> Conflict:
    """Resolve a conflict by one of `ACTIONS`, calling its function."""
    if action not in ACTIONS:
        raise InvalidKnowledgeError(
            "action",
            f"action {action[:40]!r} is unknown; take one of {', '.join(ACTIONS)}.",
        )
    if text.strip() and action != "merge":
        raise InvalidKnowledgeError(
            "text", f"text goes with merge, not with {action}; leave it out."
        )
    if action == "keep_both":
        return keep_both(conflict_id=conflict_id, by=by, reason=reason)
    if keep is None:
        raise InvalidKnowledgeError(
            "keep", f"keep is missing; {action} needs the id of the entry that stays."
        )
    if action == "merge":
        return merge_conflict(
            conflict_id=conflict_id, keep=keep, by=by, reason=reason, text=text
        )
    return override_conflict(
        conflict_id=conflict_id,
        keep=keep,
        by=by,
        reason=reason,
        retire=action == "retire_other",
    )


@transaction.atomic
def resolve_written(
    entry_id: int, *, by: User, override: str = ""
) -> tuple[Conflict, ...]:
    """Search for conflicts of a newly written entry, and act on contradictions.

    An entry that contradicts a verified one does not stay verified: it goes to review,
    unless `override` states why it is right; then the other one does. Entries that `by`
    may not see are not considered, since the effect would reveal that they exist.
    Returns its open conflicts that `by` may see, contradictions first.
    """
    # If `by` does not see all entries, the hidden ones are not compared here: a worker
    # does that.
    is_complete = Audience.objects.all().are_all_visible_to(by)
    find_entry_conflicts(entry_id, is_complete=is_complete)
    if not is_complete:
        enqueue_entries([entry_id])
    for conflict in _contradictions(entry_id, by):
        if override.strip():
            override_conflict(
                conflict_id=conflict.pk, keep=entry_id, by=by, reason=override
            )
        else:
            other = other_entry(conflict, entry_id)
            mark_for_review(
                entry_id=entry_id,
                by=by,
                reason=f"Contradicts verified entry {other}; see conflict {conflict.pk}.",
            )
            break
    visible = Conflict.objects.open().of_entry(entry_id).visible_to(by)
    return tuple(visible.order_by("kind", "-score").select_related("first", "second"))


@transaction.atomic
def verify_undisputed(
    *, entry_id: int, by: User, expected_revision: int | None = None, reason: str = ""
) -> Entry:
    """Verify an entry; raise if it has an open contradiction."""
    entry = verify_entry(
        entry_id=entry_id, by=by, expected_revision=expected_revision, reason=reason
    )
    _refuse_contradicted(entry_id, by)
    return entry


@transaction.atomic
def edit_undisputed(
    *,
    entry_id: int,
    by: User,
    expected_revision: int | None = None,
    reason: str = "",
    **changes: Unpack[EntryChanges],
) -> Entry:
    """Change an entry as `edit_entry` does; a verified one is then verified by `by`.

    A new text or question is compared as `resolve_written` does, and the entry is sent
    to review if it contradicts a verified one.

    Raises:
        InvalidKnowledgeError: The new `valid_until` has passed.
        ConflictOpenError: Only its validity changes, and it has an open contradiction
            that `by` may see: a new date would verify it.
    """
    valid_until = changes.get("valid_until")
    if valid_until is not None and valid_until <= timezone.now():
        raise InvalidKnowledgeError(
            "valid_until",
            f"{timezone.localtime(valid_until):%Y-%m-%d} has passed; give a later date, "
            "or retire the entry.",
        )
    entry = edit_entry(
        entry_id=entry_id,
        author=by,
        may_verify=True,
        expected_revision=expected_revision,
        reason=reason,
        **changes,
    )
    if changes.keys() & {"question", "text"}:
        resolve_written(entry_id, by=by)
        entry.refresh_from_db(fields=["state"])
    elif "valid_until" in changes and entry.state == Entry.State.VERIFIED:
        _refuse_contradicted(entry_id, by)
    return entry


def _refuse_contradicted(entry_id: int, by: User) -> None:
    rows = Conflict.objects.open().contradictions().of_entry(entry_id).visible_to(by)
    found = rows.order_by("pk").first()
    if found is not None:
        raise contradicted(entry_id, found)


def _contradictions(entry_id: int, by: User) -> list[Conflict]:
    verified = Entry.State.VERIFIED
    rows = Conflict.objects.open().contradictions().of_entry(entry_id).visible_to(by)
    both = rows.filter(first__state=verified, second__state=verified)
    return list(both.order_by("pk"))


def _lock_pair(conflict_id: int, keep: int, by: User) -> tuple[Conflict, int]:
    conflict = _lock(conflict_id, by)
    if keep not in (conflict.first_id, conflict.second_id):
        raise InvalidKnowledgeError(
            "keep",
            f"keep {keep} is not an entry of conflict {conflict_id}; take "
            f"{conflict.first_id} or {conflict.second_id}.",
        )
    return conflict, other_entry(conflict, keep)


def _lock(conflict_id: int, by: User) -> Conflict:
    """Lock a conflict in the order of entry edits: after the model and the entries."""
    visible = Conflict.objects.visible_to(by).filter(pk=conflict_id)
    active_model(for_share=True)
    for pair in visible.values_list("first", "second"):
        lock_all(pair)
    conflict = visible.select_for_update(of=("self",), no_key=True).first()
    if conflict is None:
        raise ConflictNotFoundError(
            f"There is no conflict {conflict_id} that you may see."
        )
    if conflict.state != Conflict.State.OPEN:
        raise ConflictResolvedError(
            f"Conflict {conflict_id} is already {conflict.get_state_display()}: there "
            "is nothing to resolve."
        )
    for side in (conflict.first, conflict.second):
        check_writable(by, side.knowledge_base_id)
    return conflict


def _clean(reason: str, *, required: bool = False) -> str:
    if required and not reason.strip():
        raise InvalidKnowledgeError(
            "reason",
            "The reason is empty; write why: it is kept with the conflict and the entry.",
        )
    return clean_line(reason, field="reason", limit=REASON_LIMIT, required=required)


def _close(
    conflict: Conflict, state: str, by: User, reason: str, kept: int | None = None
) -> Conflict:
    conflict.state = state
    conflict.kept_id = kept
    conflict.resolved_by = by
    conflict.resolved_at = timezone.now()
    conflict.reason = reason
    conflict.save()
    return conflict
