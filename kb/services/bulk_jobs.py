"""Bulk changes too large for one request, as jobs that survive a killed worker."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

from accounts.acting import acting_for
from accounts.roles import Role, has_role
from jobs.models import Job
from jobs.run import JobRun
from jobs.services import enqueue
from kb.exceptions import InvalidKnowledgeError
from kb.models import Entry

from .bulk import BATCH, Action, BulkChange, BulkReport, Failure, change_entries

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

    Raises:
        InvalidKnowledgeError: Its owner is gone or not active any more, or may not
            make the change any more.
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
