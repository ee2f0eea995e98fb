"""One change to many entries: in one transaction, or as a job that can be resumed.

Entries that cannot be changed are reported and do not keep the others from changing.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import transaction
from django.dispatch import Signal
from django.utils import timezone

from accounts.acting import acting_for
from accounts.exceptions import NescioError
from accounts.roles import Role, check_reach, has_role_somewhere, reach_of
from jobs.models import Job
from jobs.run import JobRun
from jobs.services import enqueue
from kb.audiences.models import Audience
from kb.conflicts.background import enqueue_entries
from kb.conflicts.finding import contradicted, outdate_conflicts
from kb.conflicts.models import Conflict
from kb.embedding.services import active_model, write_vectors
from kb.entries.models import Entry, Revision
from kb.exceptions import EntryNotFoundError, InvalidKnowledgeError
from kb.tags.models import Tag

from .revisions import lock_all, mark, record, refuse_retired, restore, retire, verify
from .values import check_interval, clean_reason

BATCH = 500  # entries per transaction

verified_in_bulk = Signal()
"""Sent once after a change verified entries, however many batches it had."""


class Action(StrEnum):
    VERIFY = "verify"
    MARK = "mark_for_review"
    RETIRE = "retire"
    RESTORE = "restore"
    OWNER = "owner"
    AUDIENCE = "audience"
    INTERVAL = "interval"
    PRODUCT_LINE = "product_line"
    LINE_OF_BUSINESS = "line_of_business"


_FIELDS = {
    Action.OWNER: "owner_id",
    Action.AUDIENCE: "audience_id",
    Action.INTERVAL: "review_interval_days",
    Action.PRODUCT_LINE: "product_line_id",
    Action.LINE_OF_BUSINESS: "line_of_business_id",
}
_WRITTEN = ("state", "confidence", "verified_by_id", "verified_at", *_FIELDS.values())


@dataclass(frozen=True, slots=True)
class BulkChange:
    """A change to many entries.

    `value` is the id of the owner, audience or tag, or the interval in days.
    """

    action: Action
    value: int | None = None
    reason: str = ""


class Failure(NamedTuple):
    entry_id: int
    message: str
    code: str


@dataclass(frozen=True, slots=True)
class BulkReport:
    """The result of a batch; `unchanged` entries were already as requested."""

    changed: int = 0
    unchanged_ids: tuple[int, ...] = ()
    failures: tuple[Failure, ...] = ()

    @property
    def unchanged(self) -> int:
        return len(self.unchanged_ids)


def check_change(change: BulkChange, *, may_verify: bool) -> None:
    """Raise an error that would occur for every entry."""
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
    entry_ids: Collection[int], change: BulkChange, *, by: User | None, may_verify: bool
) -> BulkReport:
    """Make one change to at most `BATCH` entries that `by` may see."""
    check_change(change, may_verify=may_verify and by is not None)
    model = active_model(for_share=True)
    locked, reach = lock_all(entry_ids), reach_of(by, Role.CURATOR)
    turn = _Turn(
        change,
        by,
        timezone.now(),
        _states_before(change, locked),
        _contradictions(change, entry_ids, by),
    )
    gone = set(entry_ids) - {entry.pk for entry in locked}
    failures = [_missing(pk) for pk in sorted(gone)]
    done = defaultdict(list)
    for entry in locked:
        try:
            check_reach(reach, entry.knowledge_base_id, Role.CURATOR)
            entry.knowledge_base.check_in_use()
            done[turn.apply(entry)].append(entry)
        except NescioError as error:
            failures.append(Failure(entry.pk, str(error), error.code))
    unchanged = tuple(entry.pk for entry in done.pop("", ()))
    changed = [entry for alike in done.values() for entry in alike]
    _save(changed, at=turn.at)
    for called, alike in done.items():
        record(alike, author=by, reason=clean_reason(change.reason) or called)
    if change.action == Action.RESTORE:
        write_vectors(changed, model=model)
    if change.action == Action.RETIRE:
        outdate_conflicts(*(entry.pk for entry in changed))
    if change.action in (Action.VERIFY, Action.RESTORE):
        _let_compare(changed)
    return BulkReport(len(changed), unchanged, tuple(failures))


def _missing(entry_id: int) -> Failure:
    return Failure(entry_id, f"There is no entry {entry_id}.", EntryNotFoundError.code)


@dataclass(frozen=True, slots=True)
class _Turn:
    change: BulkChange
    by: User | None
    at: datetime
    states_before: Mapping[int, str]
    contradictions: Mapping[int, Conflict]

    def apply(self, entry: Entry) -> str:
        """Change the entry without saving; return the change's name, "" for none."""
        action = self.change.action
        if action == Action.VERIFY and self.by is not None:
            if found := self.contradictions.get(entry.pk):
                raise contradicted(entry.pk, found)
            return verify(entry, self.by, at=self.at)
        if action == Action.MARK:
            return mark(entry)
        if action == Action.RETIRE:
            return retire(entry)
        if action == Action.RESTORE:
            return restore(entry, self.states_before.get(entry.pk))
        refuse_retired(entry)
        field = _FIELDS[action]
        if getattr(entry, field) == self.change.value:
            return ""
        setattr(entry, field, self.change.value)
        return f"Changed {field.removesuffix('_id')}."


def _contradictions(
    change: BulkChange, entry_ids: Collection[int], by: User | None
) -> dict[int, Conflict]:
    """Return an open contradiction of each entry that has one, before verifying."""
    if change.action != Action.VERIFY or by is None:
        return {}
    rows = Conflict.objects.open().contradictions().of_entry(*entry_ids).visible_to(by)
    return {
        key: row
        for row in rows.order_by("-pk")
        for key in (row.first_id, row.second_id)
    }


def _let_compare(changed: Collection[Entry]) -> None:
    """Enqueue a comparison of entries that were drafts or retired until now."""
    rows = Entry.objects.not_compared().filter(pk__in=[entry.pk for entry in changed])
    if entry_ids := list(rows.values_list("pk", flat=True)):
        enqueue_entries(entry_ids)


def _is_there(action: Action, key: int) -> bool:
    if action == Action.AUDIENCE:
        return Audience.objects.filter(pk=key).exists()
    if action in (Action.PRODUCT_LINE, Action.LINE_OF_BUSINESS):
        return Tag.objects.filter(pk=key, facet=action.value).exists()
    return User.objects.filter(pk=key, is_active=True).exists()


def _states_before(change: BulkChange, locked: Collection[Entry]) -> dict[int, str]:
    if change.action != Action.RESTORE:
        return {}
    rows = Revision.objects.filter(entry__in=locked)
    rows = rows.exclude(state=Entry.State.RETIRED).order_by("entry_id", "-number")
    return dict(rows.distinct("entry_id").values_list("entry_id", "state"))


def _save(entries: Collection[Entry], *, at: datetime) -> None:
    """Write the fields in `_WRITTEN`, one statement per set of equal values."""
    alike = defaultdict(list)
    for entry in entries:
        alike[tuple(getattr(entry, name) for name in _WRITTEN)].append(entry.pk)
    for values, ids in alike.items():
        fields = dict(zip(_WRITTEN, values, strict=True))
        Entry.objects.filter(pk__in=ids).update(**fields, updated_at=at)


KIND = "kb.change_entries"
MAX_ENTRIES = 100_000  # entries per change; their ids are stored with the job

_KEPT_FAILURES = 100


def change_visible(
    entry_ids: Collection[int], change: BulkChange, *, by: User
) -> BulkReport:
    """Change at most `BATCH` entries, those that `by` may see, by `change_entries`.

    Entries that `by` may not see are reported like those that do not exist.
    """
    report = _change_visible(entry_ids, change, by=by)
    _tell(change, report.changed)
    return report


def _tell(change: BulkChange, changed: int) -> None:
    if change.action == Action.VERIFY and changed:
        verified_in_bulk.send(BulkChange)


def _change_visible(
    entry_ids: Collection[int], change: BulkChange, *, by: User
) -> BulkReport:
    visible = Entry.objects.visible_to(by).filter(pk__in=entry_ids)
    # The knowledge base of each entry is checked later.
    may_verify = has_role_somewhere(by, Role.CURATOR)
    seen = set(visible.values_list("pk", flat=True))
    report = change_entries(seen, change, by=by, may_verify=may_verify)
    hidden = sorted(set(entry_ids) - seen)
    return replace(
        report, failures=(*report.failures, *(_missing(pk) for pk in hidden))
    )


def enqueue_change(entry_ids: Collection[int], change: BulkChange, *, by: User) -> Job:
    """Enqueue a change to these entries, batch by batch, on behalf of `by`."""
    if len(entry_ids) > MAX_ENTRIES:
        raise InvalidKnowledgeError(
            "entries",
            f"{len(entry_ids)} entries exceed the limit {MAX_ENTRIES}; narrow the list.",
        )
    parameters = {
        "action": change.action.value,
        "value": change.value,
        "reason": change.reason,
        "entries": sorted(entry_ids),
    }
    return enqueue(KIND, parameters, owner=by, total=len(entry_ids))


def change_in_background(run: JobRun) -> dict[str, object]:
    """Change the entries of a job made by `enqueue_change`, one batch per step.

    Its owner's right to see and verify is checked again for each batch.
    """
    parameters = run.parameters
    change = BulkChange(
        Action(parameters["action"]), parameters["value"], parameters["reason"]
    )
    entry_ids: list[int] = parameters["entries"]
    totals = run.cursor or {
        "done": 0, "changed": 0, "unchanged": 0, "failed": 0, "failures": [],
    }  # fmt: skip
    while totals["done"] < len(entry_ids):
        batch = entry_ids[totals["done"] : totals["done"] + BATCH]
        owner = _owner(run)
        with run.step() as step, acting_for(owner):
            report = _change_visible(batch, change, by=owner)
            new = [[each.entry_id, each.message] for each in report.failures]
            failures = [*totals["failures"], *new]
            totals = {
                "done": totals["done"] + len(batch),
                "changed": totals["changed"] + report.changed,
                "unchanged": totals["unchanged"] + report.unchanged,
                "failed": totals["failed"] + len(report.failures),
                "failures": failures[:_KEPT_FAILURES],
            }
            step.advance(done=totals["done"], cursor=totals)
    _tell(change, totals["changed"])
    return {name: value for name, value in totals.items() if name != "done"}


def _owner(run: JobRun) -> User:
    owner = User.objects.filter(pk=run.owner_id or 0, is_active=True).first()
    if owner is None or not has_role_somewhere(owner, Role.CURATOR):
        raise InvalidKnowledgeError(
            "owner",
            f"User {run.owner_id}, who requested it, was deleted, is not active, or no "
            "longer has the role curator.",
        )
    return owner
