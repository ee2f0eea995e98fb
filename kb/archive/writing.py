"""Writing an archive of one knowledge base or all, in bounded memory."""

import hashlib
import json
import zipfile
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Model, Q, QuerySet

from accounts.prepared import execute
from accounts.roles import Role
from kb.audiences.models import Audience
from kb.conflicts.models import Conflict
from kb.documents.models import Document, KnowledgeBase, Section
from kb.enrichment.models import Proposal
from kb.entries.models import Entry, Revision
from kb.entries.wordings import Wording
from kb.exceptions import InvalidKnowledgeError
from kb.synonyms.models import Synonym
from kb.tags.models import Tag

from . import format as layout

Progress = Callable[[str, int, int], None]
"""Takes what is being done, how many are done, and the total."""

_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Contents:
    """The scope of an archive: one knowledge base, or "" for all, for one reader.

    With a reader it holds only knowledge bases that the reader curates.
    """

    knowledge_base: str = ""
    reader: User | None = None


@dataclass(frozen=True, slots=True)
class _Held:
    """Ids of the numbered tables, ascending: a row's number is its position."""

    ids: "Mapping[str, array[int]]"
    audiences: frozenset[str]

    def number(self, table: str, row_id: int | None) -> int | None:
        if row_id is None:
            return None
        ids = self.ids[table]
        at = bisect_left(ids, row_id)
        return at + 1 if at < len(ids) and ids[at] == row_id else None


def write_archive(
    path: Path, contents: Contents, *, progress: Progress = lambda *_: None
) -> layout.Manifest:
    """Write an archive of one snapshot to `path`; equal states give equal bytes.

    It is first written to a file beside it, so `path` is never left half written.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        with _one_moment(), zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            manifest = _write(archive, contents, progress)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return manifest


@contextmanager
def _one_moment() -> Iterator[None]:
    """Let every query see the same snapshot, unless a transaction is open already."""
    is_outermost = not connection.in_atomic_block
    with transaction.atomic():
        if is_outermost:
            execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield


def _write(
    archive: zipfile.ZipFile, contents: Contents, progress: Progress
) -> layout.Manifest:
    rows = _rows(contents)
    held = _Held(
        ids={
            table.name: array("q", _column(rows[table.name].order_by("pk"), "pk"))
            for table in (layout.DOCUMENTS, layout.SECTIONS, layout.ENTRIES)
        },
        audiences=frozenset(_column(rows[layout.AUDIENCES.name], "slug")),
    )
    files = {}
    for table in layout.TABLES:
        with archive.open(_member(table.file), "w", force_zip64=True) as stream:
            lines = _lines(table, rows[table.name], held, progress)
            files[table.name] = _write_lines(stream, lines)
    bases = rows[layout.KNOWLEDGE_BASES.name].order_by("slug")
    manifest = layout.Manifest(
        complete=contents.reader is None,
        knowledge_bases=tuple(_column(bases, "slug")),
        files=files,
    )
    archive.writestr(_member(layout.FILE), manifest.to_json())
    return manifest


def _column(rows: QuerySet[Any], name: str) -> Iterator[Any]:
    return rows.values_list(name, flat=True).iterator(chunk_size=10 * _AT_ONCE)


def _member(name: str) -> zipfile.ZipInfo:
    # Equal content gives equal bytes: no modification time, no permissions of the user.
    member = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    member.compress_type = zipfile.ZIP_DEFLATED
    member.external_attr = 0o600 << 16
    return member


def _write_lines(stream: IO[bytes], lines: Iterable[str]) -> layout.FileFacts:
    rows = size = 0
    digest = hashlib.sha256()
    for line in lines:
        written = line.encode()
        stream.write(written)
        digest.update(written)
        rows += 1
        size += len(written)
    return layout.FileFacts(rows=rows, bytes=size, sha256=digest.hexdigest())


def _rows(contents: Contents) -> Mapping[str, QuerySet[Any]]:
    bases = KnowledgeBase.objects.all()
    if contents.reader:
        bases = bases.of_role(contents.reader, Role.CURATOR)
    if contents.knowledge_base:
        bases = bases.filter(slug=contents.knowledge_base)
        if not bases.exists():
            raise InvalidKnowledgeError(
                "knowledge_base",
                f"There is no knowledge base {contents.knowledge_base!r}; name "
                "an existing one.",
            )

    def visible(rows: Any) -> Any:
        return rows if contents.reader is None else rows.visible_to(contents.reader)

    documents = visible(Document.objects.filter(knowledge_base__in=bases))
    entries = visible(Entry.objects.filter(knowledge_base__in=bases))
    audiences = visible(Audience.objects.all())
    revisions = visible(Revision.objects.filter(entry__in=entries))
    proposals = visible(Proposal.objects.filter(entry__in=entries))
    tags = Tag.objects.all()
    if contents.knowledge_base:
        for facet in Tag.Facet.values:
            used = entries.values(facet), revisions.values(facet)
            tags = tags.filter(~Q(facet=facet) | Q(pk__in=used[0]) | Q(pk__in=used[1]))
        audiences = audiences.filter(
            Q(pk__in=documents.values("audience"))
            | Q(pk__in=entries.values("audience"))
            | Q(pk__in=revisions.values("audience"))
        )
    return {
        layout.KNOWLEDGE_BASES.name: bases,
        layout.AUDIENCES.name: audiences,
        layout.TAGS.name: tags,
        layout.DOCUMENTS.name: documents,
        layout.SECTIONS.name: Section.objects.filter(document__in=documents),
        layout.ENTRIES.name: entries,
        layout.REVISIONS.name: revisions,
        layout.CONFLICTS.name: Conflict.objects.filter(
            first__in=entries, second__in=entries
        ),
        layout.PROPOSALS.name: proposals,
        layout.WORDINGS.name: Wording.objects.filter(entry__in=entries),
        layout.SYNONYMS.name: visible(Synonym.objects.filter(knowledge_base__in=bases)),
    }


def _lines(
    table: layout.Table, rows: QuerySet[Model], held: _Held, progress: Progress
) -> Iterator[str]:
    total = rows.count()
    progress(table.name, 0, total)
    values = _with_names(table, rows) if table.named else _values(table, rows, held)
    for done, row in enumerate(values, start=1):
        yield json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n"
        if done % _AT_ONCE == 0 or done == total:
            progress(table.name, done, total)


def _with_names(table: layout.Table, rows: QuerySet[Any]) -> Iterator[dict[str, Any]]:
    for row in rows.order_by("slug").prefetch_related(table.named):
        values = {column.field: getattr(row, column.field) for column in table.columns}
        people = getattr(row, table.named).all()
        yield {**values, table.named: sorted(str(each) for each in people)}


def _values(
    table: layout.Table, rows: QuerySet[Model], held: _Held
) -> Iterator[dict[str, Any]]:
    # The order must not depend on ids, except for numbered rows, whose order they
    # define.
    order = {layout.KNOWLEDGE_BASES: ["slug"], layout.REVISIONS: ["entry_id", "number"]}
    paths = [column.path for column in table.columns]
    found = rows.order_by(*order.get(table, ["pk"])).values_list(*paths)
    for row in found.iterator(chunk_size=_AT_ONCE):
        yield {
            column.field: _kept(column, value, held)
            for column, value in zip(table.columns, row, strict=True)
        }


def _kept(column: layout.Column, value: Any, held: _Held) -> Any:
    if column.is_list:
        numbered = ((held.number(column.table, row_id), near) for row_id, near in value)
        return [[number, near] for number, near in numbered if number is not None]
    if column.table:
        return held.number(column.table, value)
    # Hide that an entry once belonged to an audience that the reader is not in.
    if column.field == "audience" and value not in held.audiences:
        return None
    return value.isoformat() if isinstance(value, datetime) else value


class TenthLines:
    """Reports progress at every tenth of each kind of work."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._shown = ("", -1)

    def __call__(self, what: str, done: int, total: int) -> None:
        tenth = 10 if done >= total else 10 * done // total
        if (what, tenth) > self._shown or what != self._shown[0]:
            self._shown = (what, tenth)
            self._write(f"{what}: {done:,} of {total:,}")
