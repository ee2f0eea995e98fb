"""Knowledge as files: archives that a job makes, and tables for spreadsheets."""

import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.postgres.aggregates import StringAgg
from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Replace
from django.http import StreamingHttpResponse

from accounts.acting import acting_for
from accounts.people import AnyUser
from accounts.prepared import execute
from accounts.rest import csv_download
from accounts.roles import Role, bases_of_role, has_role, has_role_somewhere, where_role
from jobs.models import Job, JobQuerySet
from jobs.run import JobRun
from jobs.services import enqueue
from kb.audiences.models import Audience
from kb.documents.models import Document, KnowledgeBase
from kb.entries.models import Entry, Revision
from kb.entries.values import REVISED, SHOWN
from kb.exceptions import (
    ExportForbiddenError,
    ExportNotFoundError,
    ExportNotReadyError,
    InvalidKnowledgeError,
)
from kb.interface.api import NAMED_BY
from kb.search.past import one_of_few
from kb.text import cleaning as spreadsheet_cells

from .writing import Contents, write_archive

KIND = "kb.export"


def request_export(
    *, by: User, knowledge_base: str = "", complete: bool = False
) -> Job:
    """Enqueue an archive of what `by` may see, or of everything if `complete`.

    It holds the knowledge bases that `by` curates, or only the one named. Requesting
    the same archive again while it is being made returns the same job.

    Raises:
        ExportForbiddenError: `complete` is set and `by` lacks the role admin.
        InvalidKnowledgeError: `by` curates no such knowledge base.
    """
    if complete and not has_role(by, Role.ADMIN):
        raise ExportForbiddenError(
            "A complete export needs the role admin; without `complete` you get what you "
            "may see."
        )
    curated = KnowledgeBase.objects.of_role(by, Role.CURATOR)
    if knowledge_base and not curated.filter(slug=knowledge_base).exists():
        mine = ", ".join(curated.values_list("slug", flat=True))
        raise InvalidKnowledgeError(
            "knowledge_base",
            f"There is no knowledge base {knowledge_base!r} that you curate; you curate: "
            f"{mine or 'none'}.",
        )
    return enqueue(
        KIND,
        {"knowledge_base": knowledge_base, "complete": complete},
        owner=by,
        idempotency_key=f"{KIND}:{by.pk}:{knowledge_base}:{complete}",
    )


def export_in_background(run: JobRun) -> dict[str, object]:
    """Make the archive that a job requests; a job that was killed starts over."""
    complete = run.parameters["complete"] is True
    reader = run.owner
    if reader is None or not _may_have(reader, complete=complete):
        raise ExportForbiddenError(
            "The owner of the export may no longer see its content."
        )
    audiences = [] if complete else _visible_audiences(reader)
    named = Audience.objects.filter(pk__in=audiences)
    path = _file(run.job_id)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    contents = Contents(
        knowledge_base=run.parameters["knowledge_base"],
        reader=None if complete else reader,
    )
    with nullcontext() if complete else acting_for(reader):
        manifest = write_archive(path, contents)
        slugs = list(named.values_list("slug", flat=True))
    rows = {name: facts.rows for name, facts in manifest.files.items()}
    with run.step() as step:
        step.advance(done=rows["entries"], total=rows["entries"])
    return {
        "rows": rows,
        "bytes": path.stat().st_size,
        "audiences": audiences,
        "audience_slugs": sorted(slugs),
        "knowledge_bases": [] if complete else list(manifest.knowledge_bases),
    }


def get_exports(user: User) -> JobQuerySet:
    """Return the exports that `user` requested, newest first; nobody sees another's."""
    return Job.objects.filter(kind=KIND, owner=user)


def exported_file(job_id: UUID, *, by: User) -> Path:
    """Return the path of an export's archive for `by` to fetch."""
    job = get_exports(by).filter(pk=job_id).first()
    if job is None:
        raise ExportNotFoundError(f"You have no export {job_id}.")
    if job.state != Job.State.SUCCEEDED:
        raise ExportNotReadyError(
            f"The export {job_id} is {job.state}; fetch it once it has succeeded."
        )
    complete = job.parameters["complete"] is True
    lost: set[Any] = set() if complete else {*job.result["audiences"]}
    lost -= set(_visible_audiences(by))
    if (
        lost
        or not _may_have(by, complete=complete)
        or not _curates(by, job.result.get("knowledge_bases"))
    ):
        raise ExportForbiddenError(
            "You may no longer see everything in this export; make a new one."
        )
    path = _file(job_id)
    if not path.exists():
        raise ExportNotFoundError(
            f"The export {job_id} was deleted after {settings.EXPORT_KEEP.days} days; "
            "make a new one."
        )
    return path


def prune_exports(older_than: timedelta) -> int:
    deleted = 0
    for path in settings.PLACES.exports.glob("*.zip*"):
        if time.time() - path.stat().st_mtime > older_than.total_seconds():
            path.unlink(missing_ok=True)
            deleted += 1
    return deleted


def _may_have(user: User, *, complete: bool) -> bool:
    if complete:
        return has_role(user, Role.ADMIN)
    return has_role_somewhere(user, Role.CURATOR)


def _curates(user: User, slugs: Sequence[str] | None) -> bool:
    """Return whether the user curates all of these; None stands for unknown ones."""
    if bases_of_role(user, Role.CURATOR) is None:
        return True
    mine = KnowledgeBase.objects.of_role(user, Role.CURATOR)
    return slugs is not None and {*slugs} <= {*mine.values_list("slug", flat=True)}


def _visible_audiences(user: User) -> list[int]:
    return sorted(Audience.objects.ids_visible_to(user))


def _file(job_id: UUID) -> Path:
    path: Path = settings.PLACES.exports / f"{job_id}.zip"
    return path


_ALSO_ASKED = "also_asked"
_OTHERWISE = {
    "document": {"document": "document__title", "source": "document__source"},
    "section": {"section": "section__heading"},
    "review_interval_days": {},
    "question": {"question": "question", "also_asked": _ALSO_ASKED},
    "created_at": {"revision": "revision_number", "created_at": "created_at"},
}
_OF_DOCUMENT = {"document", "source", "section"}
_AT_ONCE = 1000
# Without it a spreadsheet reads the letters in the local legacy encoding.
_BYTE_ORDER_MARK = "\ufeff"


def _paths() -> Iterator[tuple[str, str]]:
    yield "id", "pk"
    for name in SHOWN:
        by = NAMED_BY.get(Entry._meta.get_field(name).related_model)
        plain = {name: f"{name}__{by}" if by else name}
        yield from _OTHERWISE.get(name, plain).items()


_PATHS = dict(_paths())
COLUMNS = tuple(_PATHS)


def csv_response(entries: QuerySet[Entry], reader: AnyUser) -> StreamingHttpResponse:
    """Return as CSV those of the entries visible to `reader` that they curate."""
    curated = entries.filter(where_role(reader, Role.CURATOR))
    return csv_download(csv_lines(curated, reader), "entries")


# There is no history of documents' sources or of alternative questions.
_NOT_KEPT = {"source": "", _ALSO_ASKED: ""}
# A revision stores an entry's content under the same names; the rest is the entry's.
_THEN = {
    name: path if path.split("__")[0] in REVISED else f"entry__{path}"
    for name, path in _PATHS.items()
    if name not in _NOT_KEPT
} | {"id": "entry_id", "revision": "number", "updated_at": "created_at"}
_IN_FORCE = """
SELECT p.revision_id, p.title, p.heading
FROM kb_knowledgebase b CROSS JOIN LATERAL kb_past(b.id, %(at)s) p
WHERE b.id = ANY(%(bases)s) ORDER BY p.id
"""


def csv_response_then(
    reader: AnyUser, *, at: datetime, knowledge_base: str
) -> StreamingHttpResponse:
    """Return as CSV the entries as they were at `at` and that `reader` may see today.

    They come from all knowledge bases that `reader` curates, or from the one named.
    """
    curated = KnowledgeBase.objects.of_role(reader, Role.CURATOR)
    if knowledge_base:
        curated = curated.filter(slug=knowledge_base)
    bases = list(curated.values_list("pk", flat=True))
    with one_of_few():
        found = execute(_IN_FORCE, {"at": at, "bases": bases})
    lines = spreadsheet_cells.csv_lines(_rows_then(found, reader))
    return csv_download(chain([_BYTE_ORDER_MARK], lines), "entries")


def _rows_then(
    found: Sequence[tuple[Any, ...]], reader: AnyUser
) -> Iterator[Sequence[str]]:
    yield list(_PATHS)
    for start in range(0, len(found), _AT_ONCE):
        named = {pk: names for pk, *names in found[start : start + _AT_ONCE]}
        rows = Revision.objects.visible_to(reader).filter(pk__in=named)
        for pk, *values in rows.order_by("entry_id").values_list("pk", *_THEN.values()):
            row = dict(zip(_THEN, values, strict=True)) | _NOT_KEPT
            row |= {"document": named[pk][0], "section": named[pk][1]}
            yield [_cell(row[name]) for name in _PATHS]


def csv_lines(entries: QuerySet[Entry], reader: AnyUser) -> Iterator[str]:
    """Yield CSV, a header and a line for each entry, oldest first, in bounded memory.

    Times are ISO 8601. The cells of a document that the reader may not see are empty.
    """
    yield _BYTE_ORDER_MARK
    yield from spreadsheet_cells.csv_lines(_rows(entries, reader))


def _rows(entries: QuerySet[Entry], reader: AnyUser) -> Iterator[Sequence[str]]:
    yield list(_PATHS)
    # By id in batches: a cursor would keep a transaction open during the whole
    # download.
    ids = entries.order_by("pk").values_list("pk", flat=True)
    last = 0
    while chosen := list(ids.filter(pk__gt=last)[:_AT_ONCE]):
        last = chosen[-1]
        line = Replace("wordings__text", Value("\n"), Value(" "))
        answered = Q(wordings__answers=True)
        said = StringAgg(line, "\n", order_by="wordings__pk", filter=answered)
        rows = Entry.objects.filter(pk__in=chosen).with_revision_number().order_by("pk")
        rows = rows.annotate(**{_ALSO_ASKED: said})
        batch = list(rows.values_list(*_PATHS.values(), "document_id"))
        seen = set(
            Document.objects.visible_to(reader)
            .filter(pk__in={row[-1] for row in batch} - {None})
            .values_list("pk", flat=True)
        )
        for *values, document_id in batch:
            kept = _PATHS if document_id in seen else _PATHS.keys() - _OF_DOCUMENT
            yield [
                _cell(value) if name in kept else ""
                for name, value in zip(_PATHS, values, strict=True)
            ]


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value.isoformat() if isinstance(value, datetime) else str(value)
