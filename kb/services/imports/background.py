"""Importing as a background job of the kind "kb.import"."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth.models import User
from django.db import transaction

from accounts.exceptions import NotFoundError
from jobs.models import Job
from jobs.run import JobRun
from jobs.services import enqueue
from kb.models import Import

from .running import run_import

KIND = "kb.import"


@transaction.atomic
def enqueue_import(row: Import, *, apply: bool, by: User | None) -> Job:
    """Let a worker plan or apply an import; asking twice is asking once."""
    job = enqueue(
        KIND,
        {"import": row.pk, "dry_run": not apply},
        owner=by,
        idempotency_key=f"{KIND} {row.pk} {'apply' if apply else 'plan'}",
    )
    row.job_id = job.pk
    row.save(update_fields=["job_id"])
    return job


def import_in_background(run: JobRun) -> dict[str, object]:
    """Plan (`dry_run`) or apply the import that the parameter `import` names.

    Each batch's entries and the progress are written in one step: whatever happens, the
    run goes on behind the last of them.

    Returns:
        The import's counts.

    Raises:
        NotFoundError: There is no such import any more.
        ImportFileError: The file can not be read.
    """
    import_id = run.parameters.get("import")
    if not Import.objects.filter(pk=import_id or 0).exists():
        raise NotFoundError(f"There is no import {import_id}.")

    @contextmanager
    def writing(done: int, total: int | None) -> Iterator[None]:
        with run.step() as step:
            yield
            # A run that goes on says nothing of what was done before it.
            step.advance(done=max(done, step.done), total=total)

    row = run_import(
        int(import_id or 0),
        apply=run.parameters.get("dry_run") is not True,
        writing=writing,
    )
    return {"import": row.pk, "state": row.state, **row.counts}
