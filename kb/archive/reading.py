"""Reading an untrusted archive line by line, with every value checked."""

import hashlib
import json
import math
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from django.db import models

from kb.exceptions import InvalidArchiveError

from . import format as layout

MANIFEST_LIMIT = 1024 * 1024  # most bytes of a manifest
LINE_LIMIT = 1024 * 1024
"""Most bytes of a line; the longest possible entry takes a tenth of it."""
_EXPANSION_LIMIT = 200
_EXPANSION_FREE = 64 * 1024 * 1024
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


class ArchiveFile:
    """An open archive with checked members and manifest; see `open_archive`."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        _check_members(archive)
        with _damage_reported():
            text = self._archive.read(layout.FILE)
        self.manifest: layout.Manifest = layout.parse_manifest(text)
        tables = [
            table for table in layout.TABLES if table.since <= self.manifest.version
        ]
        _check_names(archive, tables)
        for table in tables:
            size = self.manifest.files[table.name].bytes
            if archive.getinfo(table.file).file_size != size:
                raise InvalidArchiveError(
                    f"{table.file} does not have the {size} bytes stated in "
                    f"{layout.FILE}; the archive is damaged, use another copy."
                )

    def rows(self, table: layout.Table) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table, checking the digest at the end.

        Columns newer than the archive's format version get their default.
        """
        version = self.manifest.version
        if table.since > version:
            return
        later = {
            each.field: table.field(each).get_default()
            for each in table.columns
            if each.since > version
        }
        facts = self.manifest.files[table.name]
        digest = hashlib.sha256()
        rows = 0
        with _damage_reported(), self._archive.open(table.file) as stream:
            while line := stream.readline(LINE_LIMIT + 1):
                rows += 1
                if len(line) > LINE_LIMIT:
                    raise InvalidArchiveError(
                        f"{table.file}, line {rows}: longer than {LINE_LIMIT} bytes."
                    )
                digest.update(line)
                yield {**_parse(line, table.file, rows), **later}
        if (rows, digest.hexdigest()) != (facts.rows, facts.sha256):
            raise InvalidArchiveError(
                f"{table.file} does not match {layout.FILE}; the archive is damaged "
                "or was changed, use another copy."
            )


@contextmanager
def open_archive(path: Path) -> Iterator[ArchiveFile]:
    with _damage_reported():
        archive = zipfile.ZipFile(path)
    with archive:
        yield ArchiveFile(archive)


@contextmanager
def _damage_reported() -> Iterator[None]:
    try:
        yield
    except _BROKEN as error:
        raise InvalidArchiveError(
            f"The file is not a readable archive, or is damaged: {error}."
        ) from error


def _check_members(archive: zipfile.ZipFile) -> None:
    members = archive.infolist()
    if len(members) > len(layout.TABLES) + 1 or layout.FILE not in archive.namelist():
        _check_names(archive, layout.TABLES)
    for member in members:
        if member.compress_type not in _COMPRESSIONS or member.flag_bits & 0x1:
            raise InvalidArchiveError(
                f"{member.filename} is encrypted or compressed by another method; use an "
                "archive that export_knowledge wrote."
            )
        limit = max(_EXPANSION_FREE, _EXPANSION_LIMIT * member.compress_size)
        if member.file_size > (
            MANIFEST_LIMIT if member.filename == layout.FILE else limit
        ):
            raise InvalidArchiveError(
                f"{member.filename} would grow from {member.compress_size} to "
                f"{member.file_size} bytes, which is too much; use another copy."
            )


def _check_names(archive: zipfile.ZipFile, tables: Sequence[layout.Table]) -> None:
    names = sorted(archive.namelist())
    expected = sorted([layout.FILE, *(table.file for table in tables)])
    if names != expected:
        raise InvalidArchiveError(
            f"The archive holds {', '.join(names[:10]) or 'nothing'}; a knowledge "
            f"archive holds {', '.join(expected)}."
        )


def _parse(line: bytes, file: str, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidArchiveError(
            f"{file}, line {number}: not JSON: {error}."
        ) from error
    if not isinstance(row, dict):
        raise InvalidArchiveError(f"{file}, line {number}: not a JSON object.")
    return row


BY_SLUG = (layout.KNOWLEDGE_BASES, layout.AUDIENCES, layout.TAGS)
"""Tables whose rows are identified by slug and may exist here already."""


@dataclass(frozen=True, slots=True)
class Named:
    """Users, groups and, by model, slugs that the rows of an archive refer to."""

    usernames: set[str] = field(default_factory=set)
    rows: dict[type[models.Model], dict[str, dict[str, Any]]] = field(
        default_factory=lambda: {table.model: {} for table in BY_SLUG}
    )

    @property
    def groups(self) -> set[str]:
        audiences = self.rows[layout.AUDIENCES.model].values()
        return {name for row in audiences for name in row["groups"]}


def check_rows(
    archive: ArchiveFile, *, progress: Callable[[str, int, int], None]
) -> Named:
    """Read and check the whole archive once; return the names it refers to."""
    named = Named()
    for table in layout.TABLES:
        total = archive.manifest.files[table.name].rows
        for number, row in enumerate(archive.rows(table), start=1):
            try:
                _check_row(table, row, archive, named)
            except ValueError as error:
                raise InvalidArchiveError(
                    f"{table.file}, line {number}: {error}"
                ) from error
            if number % 1000 == 0 or number == total:
                progress(f"checking {table.name}", number, total)
    return named


def _check_row(
    table: layout.Table, row: Mapping[str, Any], archive: ArchiveFile, named: Named
) -> None:
    expected = {column.field for column in table.columns}
    if row.keys() != expected:
        different = ", ".join(sorted(row.keys() ^ expected))
        raise ValueError(f"the fields {different} are missing or unknown.")
    for column in table.columns:
        value = row[column.field]
        if column.is_list:
            _check_pairs(column, value, archive.manifest.files[column.table].rows)
        elif column.table:
            _check_number(column, value, archive.manifest.files[column.table].rows)
        elif value is not None and column.by:
            _check_name(table, column, value, named)
        elif column.field == table.named:
            _check_list_of_names(column.field, value)
        else:
            check_value(table.field(column), value)
        if value is None and not table.field(column).null:
            raise ValueError(f"{column.field} is missing.")
    _keep_names(table, row, named)


def _keep_names(table: layout.Table, row: Mapping[str, Any], named: Named) -> None:
    if table is layout.TAGS:
        named.usernames.update(row["experts"])
    if table in BY_SLUG:
        held = named.rows[table.model]
        if row["slug"] in held:
            raise ValueError(f"the slug {row['slug']!r} occurs twice.")
        held[row["slug"]] = dict(row)


def _check_number(column: layout.Column, value: object, rows: int) -> None:
    if value is not None and not (type(value) is int and 1 <= value <= rows):
        raise ValueError(f"{column.field} {value!r} is not a row of {column.table}.")


def _check_pairs(column: layout.Column, value: object, rows: int) -> None:
    pairs: list[Any] = value if isinstance(value, list) else [value]
    for pair in pairs:
        near = pair[1] if isinstance(pair, list) and len(pair) == 2 else None
        if near is None or type(pair[0]) is not int or not _is_number(near):
            raise ValueError(
                f"{column.field} {str(pair)[:80]!r} is not a pair of row and number."
            )
        _check_number(column, pair[0], rows)


def _check_name(
    table: layout.Table, column: layout.Column, value: object, named: Named
) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{column.field} {value!r} is not a name.")  # noqa: TRY004  # one error for any fault in a row
    if column.by == "username":
        _check_text("username", value, 150)
        named.usernames.add(value)
        return
    model = table.field(column).related_model
    found = named.rows[model].get(value) if isinstance(model, type) else None
    if found is None or found.get("facet", column.field) != column.field:
        raise ValueError(f"{column.field} {value!r} is not in the archive.")


def _check_list_of_names(field_name: str, value: object) -> None:
    names = value if isinstance(value, list) else [None]
    for name in names:
        if not isinstance(name, str) or not name:
            raise ValueError(f"{field_name} {value!r} is not a list of names.")
        _check_text(field_name, name, 150)


def check_value(field: "models.Field[Any, Any]", value: object) -> None:
    """Raise ValueError or TypeError for a value that the model's field cannot hold."""
    if value is None:
        return  # the caller checks whether it may be missing
    is_right = next((test for kind, test in _TESTS if isinstance(field, kind)), None)
    if is_right is None:
        raise TypeError(f"{field} is of a kind that archives cannot store")
    if not is_right(value):
        raise ValueError(
            f"{field.name} {str(value)[:80]!r} is not a valid value of the field."
        )
    if isinstance(value, str) and not isinstance(field, models.DateTimeField):
        _check_text(field.name, value, field.max_length)
        choices = [choice for choice, _ in field.flatchoices]
        if choices and value not in choices:
            raise ValueError(
                f"{field.name} {value!r} is not one of {', '.join(choices)}."
            )


def _check_text(name: str, value: str, limit: int | None) -> None:
    if limit is not None and len(value) > limit:
        raise ValueError(f"{name} has {len(value)} characters and may have {limit}.")
    if "\0" in value or any("\ud800" <= each <= "\udfff" for each in value):
        raise ValueError(f"{name} {value[:40]!a} cannot be stored in the database.")


def _is_moment(value: object) -> bool:
    try:
        return datetime.fromisoformat(str(value)).tzinfo is not None
    except ValueError:
        return False


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(float(str(value)))


def _is_whole(least: int, limit: int, value: object) -> bool:
    return type(value) is int and least <= value < limit


_TESTS: "tuple[tuple[type[models.Field[Any, Any]], Callable[[object], bool]], ...]" = (
    (models.DateTimeField, _is_moment),
    (models.FloatField, _is_number),
    (models.BooleanField, lambda value: isinstance(value, bool)),
    (models.BigIntegerField, partial(_is_whole, -(2**63), 2**63)),
    (models.IntegerField, partial(_is_whole, 0, 2**31)),
    (models.CharField, lambda value: isinstance(value, str)),
    (models.TextField, lambda value: isinstance(value, str)),
    (models.JSONField, lambda value: isinstance(value, list | dict)),
)
