"""One change of many entries: a batch is one transaction and few statements.

What single entries go through is decided by the same functions; what cannot be changed is
reported and does not keep the others from it.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from accounts.acting import acting_for
from accounts.exceptions import NescioError
from accounts.roles import Role, has_role
from jobs.models import Job
from jobs.run import JobRun
from jobs.services import enqueue
from kb.audiences.models import Audience
from kb.conflicts.finding import outdate_conflicts_of
from kb.embedding.services import active_model, write_vectors
from kb.entries.models import Entry, Revision
from kb.exceptions import InvalidKnowledgeError
from kb.tags.models import Tag

from .revisions import lock_all, mark, record, refuse_retired, restore, retire, verify
from .values import check_interval, clean_reason

BATCH = 500
"""Entries of one transaction."""

_WRITTEN = (
    "state", "confidence", "verified_by_id", "verified_at", "owner_id", "audience_id",
    "review_interval_days", "product_line_id", "line_of_business_id",
)  # fmt: skip


class Action(StrEnum):
    """What is done to many entries at once."""

    VERIFY = "verify"
    MARK = "mark_for_review"
    RETIRE = "retire"
    RESTORE = "restore"
    OWNER = "owner"
    AUDIENCE = "audience"
    INTERVAL = "interval"
    PRODUCT_LINE = "product_line"
    LINE_OF_BUSINESS = "line_of_business"


@dataclass(frozen=True, slots=True)
class BulkChange:
    """A change to be made.

    Attributes:
        value: The owner's, the audience's or the tag's key, or the interval in days;
            None takes owner, tag or interval away, and is what the other actions have.
        reason: Kept with every revision; "" says what was done.
    """

    action: Action
    value: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an entry was not changed."""

    entry_id: int
    message: str


@dataclass(frozen=True, slots=True)
class BulkReport:
    """What became of a batch; `unchanged` entries stood so already."""

    changed: int = 0
    unchanged: int = 0
    failures: tuple[Failure, ...] = ()


def check_change(change: BulkChange, *, may_verify: bool) -> None:
    """Refuse what would fail for every entry.

    Raises:
        InvalidKnowledgeError: Its value or reason may not be written, or it is a
            verification by someone who may not verify.
    """
    clean_reason(change.reason)
    if change.action == Action.VERIFY and not may_verify:
        raise InvalidKnowledgeError(
            "action", "Verifying needs the role curator; mark the entries for review."
        )
    if change.action == Action.INTERVAL:
        check_interval(change.value)
    elif change.action == Action.AUDIENCE and change.value is None:
        raise InvalidKnowledgeError("audience", "audience is missing; name one.")
    elif change.value is not None and not _is_there(change.action, change.value):
        raise InvalidKnowledgeError(
            change.action,
            f"There is no {change.action} {change.value}; choose another.",
        )


@transaction.atomic
def change_entries(
    entry_ids: Collection[int],
    change: BulkChange,
    *,
    by: User | None,
    may_verify: bool,
) -> BulkReport:
    """Make one change of these entries, each with its next revision.

    Args:
        entry_ids: At most `BATCH` that `by` may see.
        by: Who changes them; None for the system, which verifies nothing.
        may_verify: Whether `by` may vouch.
    """
    check_change(change, may_verify=may_verify and by is not None)
    model = active_model(for_share=True)
    locked = lock_all(entry_ids)
    turn = _Turn(change, by, timezone.now(), _states_before(change, locked))
    gone = set(entry_ids) - {entry.pk for entry in locked}
    failures = [Failure(pk, f"There is no entry {pk}.") for pk in sorted(gone)]
    done = defaultdict(list)
    for entry in locked:
        try:
            done[turn.apply(entry)].append(entry)
        except NescioError as error:
            failures.append(Failure(entry.pk, str(error)))
    unchanged = len(done.pop("", ()))
    changed = [entry for alike in done.values() for entry in alike]
    _save(changed, at=turn.at)
    for called, alike in done.items():
        record(alike, author=by, reason=clean_reason(change.reason) or called)
    if change.action == Action.RESTORE:
        write_vectors(changed, model=model)
    if change.action == Action.RETIRE:
        outdate_conflicts_of(*(entry.pk for entry in changed))
    return BulkReport(
        changed=len(changed), unchanged=unchanged, failures=tuple(failures)
    )


@dataclass(frozen=True, slots=True)
class _Turn:
    """What is done to each entry of a batch."""

    change: BulkChange
    by: User | None
    at: datetime
    states_before: Mapping[int, str]

    def apply(self, entry: Entry) -> str:
        """Change the entry, not saved; return what that is called, "" for nothing."""
        action = self.change.action
        if action == Action.VERIFY and self.by is not None:
            return verify(entry, self.by, at=self.at)
        if action == Action.MARK:
            return mark(entry)
        if action == Action.RETIRE:
            return retire(entry)
        if action == Action.RESTORE:
            return restore(entry, self.states_before.get(entry.pk))
        refuse_retired(entry)
        field, called = _FIELDS[action]
        if getattr(entry, field) == self.change.value:
            return ""
        setattr(entry, field, self.change.value)
        return f"Changed {called}."


_FIELDS: Mapping[Action, tuple[str, str]] = {
    Action.OWNER: ("owner_id", "owner"),
    Action.AUDIENCE: ("audience_id", "audience"),
    Action.INTERVAL: ("review_interval_days", "review_interval_days"),
    Action.PRODUCT_LINE: ("product_line_id", "product_line"),
    Action.LINE_OF_BUSINESS: ("line_of_business_id", "line_of_business"),
}


def _is_there(action: Action, key: int) -> bool:
    if action == Action.AUDIENCE:
        return Audience.objects.filter(pk=key).exists()
    if action in (Action.PRODUCT_LINE, Action.LINE_OF_BUSINESS):
        return Tag.objects.filter(pk=key, facet=action.value).exists()
    return User.objects.filter(pk=key, is_active=True).exists()


def _states_before(change: BulkChange, locked: Collection[Entry]) -> dict[int, str]:
    """Return for entries that are restored what each was before its retirement."""
    if change.action != Action.RESTORE:
        return {}
    rows = Revision.objects.filter(entry__in=locked)
    rows = rows.exclude(state=Entry.State.RETIRED).order_by("entry_id", "-number")
    return dict(rows.distinct("entry_id").values_list("entry_id", "state"))


def _save(entries: Collection[Entry], *, at: datetime) -> None:
    """Write what `_WRITTEN` names: one statement for all that get the same values."""
    alike = defaultdict(list)
    for entry in entries:
        alike[tuple(getattr(entry, name) for name in _WRITTEN)].append(entry.pk)
    for values, ids in alike.items():
        fields = dict(zip(_WRITTEN, values, strict=True))
        Entry.objects.filter(pk__in=ids).update(**fields, updated_at=at)


# Bulk changes too large for one request, as jobs that survive a killed worker.


KIND = "kb.change_entries"
MOST = 100_000
"""Entries of one change; their ids are kept with the job."""

_KEPT_FAILURES = 100


def change_visible(
    entry_ids: Collection[int], change: BulkChange, *, by: User
) -> BulkReport:
    """Change those of at most `BATCH` entries that `by` may see, as `change_entries` does.

    What `by` may not see is told like what is not there.
    """
    visible = Entry.objects.visible_to(by).filter(pk__in=entry_ids)
    may_verify = has_role(by, Role.CURATOR)
    seen = set(visible.values_list("pk", flat=True))
    report = change_entries(seen, change, by=by, may_verify=may_verify)
    hidden = sorted(set(entry_ids) - seen)
    return BulkReport(
        report.changed,
        report.unchanged,
        (*report.failures, *(Failure(pk, f"There is no entry {pk}.") for pk in hidden)),
    )


def enqueue_change(entry_ids: Collection[int], change: BulkChange, *, by: User) -> Job:
    """Let a worker change these entries, batch by batch, in the name of `by`.

    Raises:
        InvalidKnowledgeError: They are more than `MOST`.
    """
    if len(entry_ids) > MOST:
        raise InvalidKnowledgeError(
            "entries",
            f"{len(entry_ids)} entries are more than {MOST} at a time; narrow the list.",
        )
    parameters = {
        "action": change.action.value,
        "value": change.value,
        "reason": change.reason,
        "entries": sorted(entry_ids),
    }
    return enqueue(KIND, parameters, owner=by, total=len(entry_ids))


def change_in_background(run: JobRun) -> dict[str, object]:
    """Change the entries of a job made by `enqueue_change`, a batch a step.

    Whether its owner may see and verify is asked anew for each batch.

    Returns:
        How many were changed, unchanged and failed; the first failures by entry.
    """
    change = _change_of(run.parameters)
    entry_ids: list[int] = run.parameters["entries"]
    tally = _Tally(**run.cursor) if run.cursor else _Tally()
    while tally.done < len(entry_ids):
        batch = entry_ids[tally.done : tally.done + BATCH]
        owner = _owner(run)
        with run.step() as step, acting_for(owner):
            report = change_visible(batch, change, by=owner)
            tally = tally.with_report(report, len(batch))
            step.advance(done=tally.done, cursor=tally.as_json())
    result = tally.as_json()
    del result["done"]
    return result


@dataclass(frozen=True, slots=True)
class _Tally:
    """What was done so far; kept with the job between its steps."""

    done: int = 0
    changed: int = 0
    unchanged: int = 0
    failed: int = 0
    failures: tuple[tuple[int, str], ...] = ()

    def with_report(self, report: BulkReport, size: int) -> "_Tally":
        failures = [(each.entry_id, each.message) for each in report.failures]
        return _Tally(
            self.done + size,
            self.changed + report.changed,
            self.unchanged + report.unchanged,
            self.failed + len(failures),
            (*self.failures, *failures)[:_KEPT_FAILURES],
        )

    def as_json(self) -> dict[str, object]:
        return {
            "done": self.done,
            "changed": self.changed,
            "unchanged": self.unchanged,
            "failed": self.failed,
            "failures": list(self.failures),
        }


def _change_of(parameters: Mapping[str, Any]) -> BulkChange:
    return BulkChange(
        Action(parameters["action"]), parameters["value"], parameters["reason"]
    )


def _owner(run: JobRun) -> User:
    owner = None
    if run.owner_id is not None:
        owner = User.objects.filter(pk=run.owner_id, is_active=True).first()
    if owner is None:
        raise InvalidKnowledgeError(
            "owner", f"User {run.owner_id}, whose change it is, is gone or not active."
        )
    return owner
