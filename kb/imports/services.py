"""Importing as a background job of the kind "kb.import"."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth.models import User
from django.db import transaction

from accounts.exceptions import ConflictError, NotFoundError
from accounts.roles import Role, has_role
from jobs.models import Job
from jobs.run import JobRun
from jobs.services import enqueue
from kb.exceptions import InvalidKnowledgeError
from kb.imports.models import Import

from .running import run_import
from .uploads import Upload, limits, start_import, unfinished_import

KIND = "kb.import"


@transaction.atomic
def enqueue_import(row: Import, *, apply: bool, by: User | None) -> Job:
    """Let a worker plan or apply an import; asking twice is asking once."""
    if apply:
        _check_appliable(row)
    job = enqueue(
        KIND,
        {"import": row.pk, "dry_run": not apply},
        owner=by,
        idempotency_key=f"{KIND} {row.pk} {'apply' if apply else 'plan'}",
    )
    row.job_id = job.pk
    row.save(update_fields=["job_id"])
    return job


def _check_appliable(row: Import) -> None:
    """Refuse to apply what is applied, or what a worker is still looking through."""
    now = Import.objects.select_for_update(of=("self",), no_key=True).get(pk=row.pk)
    if now.state == Import.State.APPLIED:
        raise ConflictError(
            f"Import {row.pk} is applied already; upload the file again."
        )
    plans = Job.objects.unfinished().filter(parameters__dry_run=True)
    if now.job_id and plans.filter(pk=now.job_id).exists():
        raise ConflictError(
            f"Import {row.pk} is still being checked; apply it when it is planned."
        )


def import_in_background(run: JobRun) -> dict[str, object]:
    """Plan (`dry_run`) or apply the import that the parameter `import` names.

    Each batch's entries and the progress are written in one step: whatever happens, the
    run goes on behind the last of them.

    Returns:
        The import's counts.

    Raises:
        NotFoundError: There is no such import any more.
        InvalidKnowledgeError: Who asked for it may import no more.
    """
    import_id = run.parameters.get("import")
    row = Import.objects.filter(pk=import_id or 0).select_related("created_by").first()
    if row is None:
        raise NotFoundError(f"There is no import {import_id}.")
    if row.created_by is None or not has_role(row.created_by, Role.CURATOR):
        raise InvalidKnowledgeError(
            "owner",
            f"Who asked for import {row.pk} is gone, or is no curator any more; let "
            "somebody else upload the file.",
        )

    @contextmanager
    def writing(done: int, total: int | None) -> Iterator[None]:
        with run.step() as step:
            yield
            # A run that goes on says nothing of what was done before it.
            step.advance(done=max(done, step.done), total=total)

    row = run_import(
        row.pk,
        apply=run.parameters.get("dry_run") is not True,
        writing=writing,
    )
    return {"import": row.pk, "state": row.state, **row.counts}


# Files of knowledge: uploaded, planned, applied.


__all__ = [
    "KIND",
    "Upload",
    "enqueue_import",
    "import_in_background",
    "limits",
    "run_import",
    "start_import",
    "unfinished_import",
]
