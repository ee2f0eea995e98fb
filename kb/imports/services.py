"""Imports as jobs of the kind "kb.import": storing, planning and applying files."""

import hashlib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import PurePath
from typing import IO, Any

from django.contrib.auth.models import User
from django.core.files import File
from django.db import transaction
from django.utils import timezone

from accounts.exceptions import ConflictError, NotFoundError
from accounts.roles import Role, has_role_in
from jobs.models import Job
from jobs.run import JobRun
from jobs.services import enqueue
from kb.audiences.models import Audience
from kb.documents.models import KnowledgeBase, check_writable
from kb.entries.values import check_tag
from kb.exceptions import InvalidKnowledgeError
from kb.imports.models import Import
from kb.imports.readers import detect_format
from kb.sources.models import FollowedSource
from kb.tags.models import Tag
from kb.text.cleaning import SOURCE_LIMIT, TITLE_LIMIT, clean_line

from .pieces import check_audience, limits
from .running import refuse_overtaken, run_import

_NAME_LIMIT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    file: IO[bytes]
    name: str  # the file's name; a path's last part
    knowledge_base: KnowledgeBase
    audience: Audience
    source: str = ""  # identifies the document and its versions; empty: the name
    title: str = ""  # empty: the document's own, or the name without its ending
    verify: bool = False
    product_line: Tag | None = None
    line_of_business: Tag | None = None
    followed: FollowedSource | None = None  # whose document it is


@transaction.atomic
def start_import(upload: Upload, *, by: User | None) -> Import:
    """Store a file to be planned or applied later; none of its facts are read yet."""
    check_writable(by, upload.knowledge_base.pk)
    if upload.verify and by is None:
        raise InvalidKnowledgeError(
            "verify", "verify needs an author: only a person can verify."
        )
    name = _name(upload)
    file_format = detect_format(name, upload.file, limits())
    begun = Import(file_name=name, format=file_format, **_fields(upload, by))
    check_audience(begun.knowledge_base, begun.source, begun.audience, by)
    check_tag(Tag.Facet.PRODUCT_LINE, upload.product_line)
    check_tag(Tag.Facet.LINE_OF_BUSINESS, upload.line_of_business)
    kept = f"{uuid.uuid4().hex}{PurePath(name).suffix.lower()}"
    begun.file.save(kept, File(upload.file), save=False)
    begun.save()
    return begun


def unfinished_import(upload: Upload, *, by: User | None) -> Import | None:
    """Return the same import if it was interrupted and no job works on it."""
    broken_off = Import.objects.filter(state=Import.State.APPLYING, job_id=None)
    return broken_off.filter(**_fields(upload, by)).first()


def _name(upload: Upload) -> str:
    tail = PurePath(upload.name).name[-_NAME_LIMIT:]
    return clean_line(tail, field="file", limit=_NAME_LIMIT)


def _fields(upload: Upload, by: User | None) -> dict[str, Any]:
    """Return the fields that identify this import."""
    digest = hashlib.file_digest(upload.file, "sha256").hexdigest()  # type: ignore[arg-type]  # any binary file will do
    upload.file.seek(0)
    source = upload.source or _name(upload)
    return {
        "knowledge_base": upload.knowledge_base,
        "audience": upload.audience,
        "file_sha256": digest,
        "source": clean_line(source, field="source", limit=SOURCE_LIMIT),
        "document_title": clean_line(
            upload.title, field="title", limit=TITLE_LIMIT, required=False
        ),
        "created_by": by,
        "verify_as": by if upload.verify else None,
        "product_line": upload.product_line,
        "line_of_business": upload.line_of_business,
        "followed": upload.followed,
    }


KIND = "kb.import"


@transaction.atomic
def enqueue_import(row: Import, *, apply: bool, by: User | None) -> Job:
    """Queue a job that plans or applies an import, or return the one that exists."""
    check_writable(by, row.knowledge_base_id)
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
    if now.state == Import.State.FAILED and not now.counts.get("read"):
        raise ConflictError(
            f"Import {row.pk} failed before anything of {row.file_name} was read: "
            f"{now.error} Upload a corrected file."
        )
    if now.is_unreadable:
        raise ConflictError(
            f"Import {row.pk} has no row that could be read; correct {row.file_name} and "
            "upload it again."
        )
    refuse_overtaken(now)


def delete_import(row: Import) -> None:
    row.file.delete(save=False)
    row.delete()


def prune_plans(older_than: timedelta) -> int:
    """Delete imports that were planned long ago but never applied, with their files."""
    old = Import.objects.filter(
        state=Import.State.PLANNED, created_at__lt=timezone.now() - older_than
    )
    ids = list(old.values_list("pk", flat=True))
    for import_id in ids:
        with transaction.atomic():
            rows = old.select_for_update(of=("self",), skip_locked=True)
            if row := rows.filter(pk=import_id).first():
                delete_import(row)
    return len(ids)


def import_in_background(run: JobRun) -> dict[str, object]:
    """Plan (`dry_run`) or apply the import that the parameter `import` names.

    Each batch's entries and the progress are written in one transaction, so that a run
    always resumes after the last batch written.
    """
    import_id = run.parameters.get("import")
    row = (
        Import.objects.filter(pk=import_id or 0)
        .select_related("created_by", "knowledge_base")
        .first()
    )
    if row is None:
        raise NotFoundError(f"There is no import {import_id}.")
    if row.created_by is None or not has_role_in(
        row.created_by, Role.CURATOR, row.knowledge_base_id
    ):
        raise InvalidKnowledgeError(
            "owner",
            f"The owner of import {row.pk} is gone or is no longer a curator of "
            f"{row.knowledge_base}; have another curator upload the file.",
        )
    row.knowledge_base.check_in_use()

    @contextmanager
    def writing(done: int, total: int | None) -> Iterator[None]:
        with run.step() as step:
            yield
            # A resumed run starts counting at 0, which must not lower the progress.
            step.advance(done=max(done, step.done), total=total)

    applies = run.parameters.get("dry_run") is not True
    # True if a worker was killed between the import's last step and the end of its job.
    is_done = row.state == Import.State.APPLIED and row.job_id == run.job_id
    if not is_done:
        row = run_import(row.pk, apply=applies, writing=writing, check=run.check)
    return {"import": row.pk, "state": row.state, **row.counts}
