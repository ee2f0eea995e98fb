"""Restoring an archive: checked completely, then written in one transaction."""

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.db import DataError, IntegrityError, connection, transaction

from accounts.exceptions import first_of
from accounts.people import group_names
from accounts.prepared import check_constraints, execute, lock_until_commit
from kb.audiences.models import Audience
from kb.conflicts.background import enqueue_comparison
from kb.documents.models import Document, KnowledgeBase
from kb.embedding.services import active_model, write_vectors
from kb.entries.models import Entry
from kb.exceptions import InvalidArchiveError
from kb.tags.models import Tag

from .format import AUDIENCES, DOCUMENTS, ENTRIES, SECTIONS, TABLES, TAGS, Column, Table
from .reading import BY_SLUG, ArchiveFile, Named, check_rows, open_archive
from .writing import Progress

_AT_ONCE = 1000
_EMBEDDED_AT_ONCE = 256
_SHOWN_NAMES = 10


@dataclass(frozen=True, slots=True)
class Newcomers:
    """How to treat users and groups of the archive that do not exist here."""

    create_users: bool = False
    create_groups: bool = False
    users: Mapping[str, str] = field(default_factory=dict)  # existing users instead


@dataclass(frozen=True, slots=True)
class Restored:
    knowledge_bases: tuple[str, ...]
    rows: Mapping[str, int]
    new_users: tuple[str, ...]
    new_groups: tuple[str, ...]


def restore_archive(
    path: Path,
    *,
    newcomers: Newcomers | None = None,
    slug: str = "",
    dry_run: bool = False,
    progress: Progress = lambda *_: None,
) -> Restored:
    """Restore an archive's content, with its history, under new ids, and embed it.

    Args:
        slug: The new slug of the archive's only knowledge base; "" keeps its own.
    """
    newcomers = newcomers or Newcomers()
    with open_archive(path) as archive:
        named = check_rows(archive, progress=progress)
        if slug:
            _rename(named, slug)
        with _contradictions_reported(), transaction.atomic():
            lock_until_commit("kb.restore")
            restored = _plan(archive, named, newcomers)
            if not dry_run:
                _write(archive, named, newcomers, restored, progress)
                enqueue_comparison(f"restore {uuid4()}")
    return restored


@contextmanager
def _contradictions_reported() -> Iterator[None]:
    try:
        yield
    except (IntegrityError, DataError) as error:
        raise InvalidArchiveError(
            f"The archive contradicts itself, and nothing was restored: {error}"
        ) from error


def _rename(named: Named, slug: str) -> None:
    rows = named.rows[KnowledgeBase]
    if len(rows) != 1:
        raise InvalidArchiveError(
            f"The archive holds {', '.join(rows) or 'no knowledge base'}: a new "
            "slug can be given to one only. Export that one (export_knowledge "
            "--knowledge-base)."
        )
    try:
        KnowledgeBase._meta.get_field("slug").run_validators(slug)
    except ValidationError as error:
        raise InvalidArchiveError(
            f"The slug {slug!r}: {' '.join(error.messages)}"
        ) from error
    for row in rows.values():
        row["slug"] = slug


def _plan(archive: ArchiveFile, named: Named, newcomers: Newcomers) -> Restored:
    """Check that the archive fits this installation; return what would be restored."""
    _check_knowledge_bases(named)
    _check_audiences(named)
    _check_tags(named)
    wanted = {newcomers.users.get(name, name) for name in named.usernames}
    there = set(
        User.objects.filter(username__in=wanted).values_list("username", flat=True)
    )
    new_users = sorted(wanted - there)
    new_groups = sorted(named.groups - {group.name for group in _groups(named)})
    if new_users and not newcomers.create_users:
        raise InvalidArchiveError(
            f"The archive names unknown users: {_shown(new_users)}. Have "
            "them created (inactive, without a password: --create-users), or name "
            "existing users for them (--user)."
        )
    if new_groups and not newcomers.create_groups:
        raise InvalidArchiveError(
            f"The archive names unknown groups: {_shown(new_groups)}. Create "
            "them first, or have them created (without members: --create-groups)."
        )
    files = archive.manifest.files
    return Restored(
        knowledge_bases=_slugs(named),
        rows={name: facts.rows for name, facts in files.items()},
        new_users=tuple(new_users),
        new_groups=tuple(new_groups),
    )


def _slugs(named: Named) -> tuple[str, ...]:
    return tuple(row["slug"] for row in named.rows[KnowledgeBase].values())


def _check_knowledge_bases(named: Named) -> None:
    there = KnowledgeBase.objects.filter(slug__in=_slugs(named))
    for knowledge_base in there:
        holds = (
            Entry.objects.filter(knowledge_base=knowledge_base).exists()
            or Document.objects.filter(knowledge_base=knowledge_base).exists()
        )
        if holds:
            raise InvalidArchiveError(
                f"The knowledge base {knowledge_base.slug!r} holds knowledge already; "
                "restore where it is empty or missing, or under another slug (--slug)."
            )


def _check_audiences(named: Named) -> None:
    there = Audience.objects.filter(slug__in=named.rows[Audience])
    for audience in there.prefetch_related("groups"):
        row = named.rows[Audience][audience.slug]
        groups = group_names(audience.groups.all())
        if (audience.everyone, groups) != (row["everyone"], sorted(row["groups"])):
            raise InvalidArchiveError(
                f"The audience {audience.slug!r} has other members here than in "
                "the archive, so who may see what would change. Make them agree first."
            )


def _check_tags(named: Named) -> None:
    for tag in Tag.objects.filter(slug__in=named.rows[Tag]):
        if tag.facet != named.rows[Tag][tag.slug]["facet"]:
            raise InvalidArchiveError(
                f"The tag {tag.slug!r} is a {tag.get_facet_display()} here but not in "
                "the archive; give the tag here another slug first."
            )


def _groups(named: Named) -> list[Group]:
    return list(Group.objects.filter(name__in=named.groups))


def _shown(names: Sequence[str]) -> str:
    return first_of([repr(name) for name in names], _SHOWN_NAMES)


@dataclass(frozen=True, slots=True)
class _Ids:
    names: Mapping[str, Mapping[str, int]]  # by field or "username"
    numbers: "Mapping[str, array[int]]"  # in the order of the archive

    def of(self, column: Column, value: Any) -> Any:
        if value is None:
            return None
        if column.is_list:
            numbers = self.numbers[column.table]
            return [[numbers[number - 1], near] for number, near in value]
        if column.table:
            return self.numbers[column.table][value - 1]
        if column.by:
            kind = "username" if column.by == "username" else column.field
            return self.names[kind][value]
        return value


def _write(
    archive: ArchiveFile,
    named: Named,
    newcomers: Newcomers,
    restored: Restored,
    progress: Progress,
) -> None:
    model = active_model(for_share=True)
    Group.objects.bulk_create([Group(name=name) for name in restored.new_groups])
    made = [User(username=name, is_active=False) for name in restored.new_users]
    for user in made:
        user.set_unusable_password()
    User.objects.bulk_create(made)
    users = _users(named, newcomers)
    ids = _Ids(
        names={
            "knowledge_base": _write_knowledge_bases(named),
            "audience": _write_named(
                AUDIENCES, named, {group.name: group for group in _groups(named)}
            ),
            "username": users,
            **dict.fromkeys(Tag.Facet.values, _write_named(TAGS, named, users)),
        },
        numbers={
            table.name: _next_ids(table, archive.manifest.files[table.name].rows)
            for table in (DOCUMENTS, SECTIONS, ENTRIES)
        },
    )
    for table in TABLES:
        if table not in BY_SLUG:
            _write_table(table, archive, ids, progress)
    check_constraints()
    entry_ids = ids.numbers[ENTRIES.name]
    for start in range(0, len(entry_ids), _EMBEDDED_AT_ONCE):
        chosen = entry_ids[start : start + _EMBEDDED_AT_ONCE]
        rows = Entry.objects.filter(pk__in=chosen).defer("search_vector")
        write_vectors(list(rows), model=model)
        progress("embedding entries", start + len(chosen), len(entry_ids))


def _write_knowledge_bases(named: Named) -> dict[str, int]:
    ids = {}
    for slug, row in named.rows[KnowledgeBase].items():
        written, _ = KnowledgeBase.objects.get_or_create(slug=row["slug"])
        written.synonyms.all().delete()  # the archive's synonyms replace them
        # An update, because the field itself sets the time of creation on insert.
        KnowledgeBase.objects.filter(pk=written.pk).update(**row)
        ids[slug] = written.pk
    return ids


def _write_named(
    table: Table, named: Named, members: Mapping[str, Any]
) -> dict[str, int]:
    """Create missing audiences or tags; existing ones are left unchanged."""
    ids = {}
    for slug, row in named.rows[table.model].items():
        fields = {name: row[name] for name in row.keys() - {"slug", table.named}}
        written, is_new = table.model._default_manager.get_or_create(
            slug=slug, defaults=fields
        )
        if is_new:
            chosen = [members[name] for name in row[table.named]]
            getattr(written, table.named).set(chosen)
        ids[slug] = written.pk
    return ids


def _users(named: Named, newcomers: Newcomers) -> dict[str, int]:
    taken = {name: newcomers.users.get(name, name) for name in named.usernames}
    there = User.objects.filter(username__in=set(taken.values()))
    ids = dict(there.values_list("username", "pk"))
    return {name: ids[instead] for name, instead in taken.items()}


def _next_ids(table: Table, count: int) -> "array[int]":
    rows = execute(
        "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)",
        [table.model._meta.db_table, count],
    )
    return array("q", sorted(row[0] for row in rows))


def _write_table(
    table: Table, archive: ArchiveFile, ids: _Ids, progress: Progress
) -> None:
    """Insert a table's rows unchanged, without what fields do on saving (auto_now)."""
    own = ids.numbers.get(table.name)
    total = archive.manifest.files[table.name].rows
    names = [table.field(column).attname for column in table.columns]
    batch: list[dict[str, Any]] = []
    for number, row in enumerate(archive.rows(table), start=1):
        values = (ids.of(column, row[column.field]) for column in table.columns)
        written = dict(zip(names, values, strict=True))
        batch.append(written if own is None else {"id": own[number - 1], **written})
        if len(batch) == _AT_ONCE or number == total:
            _insert(table, batch)
            batch.clear()
            progress(f"restoring {table.name}", number, total)


def _insert(table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    name = connection.ops.quote_name(table.model._meta.db_table)
    columns = ", ".join(connection.ops.quote_name(column) for column in rows[0])
    execute(
        f"INSERT INTO {name} ({columns}) SELECT {columns}"  # noqa: S608  # the models' names
        f" FROM jsonb_populate_recordset(NULL::{name}, %s::jsonb)",
        [json.dumps(rows)],
    )
