"""Holding every row of an archive against the models, before anything is written."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import models

from kb.exceptions import InvalidArchiveError

from .reading import ArchiveFile
from .tables import AUDIENCES, KNOWLEDGE_BASES, TABLES, TAGS, Column, Table

_INTEGER_LIMIT = 2**31
_BIG_INTEGER_LIMIT = 2**63


@dataclass(frozen=True, slots=True)
class Named:
    """Whom and what the rows of an archive name."""

    usernames: set[str] = field(default_factory=set)
    audiences: dict[str, dict[str, Any]] = field(default_factory=dict)
    knowledge_bases: dict[str, dict[str, Any]] = field(default_factory=dict)
    tags: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def groups(self) -> set[str]:
        """Names of the groups that audiences are made of."""
        return {name for row in self.audiences.values() for name in row["groups"]}

    def by_slug(self, model: type[models.Model]) -> dict[str, dict[str, Any]]:
        """Return the rows so far of one of the tables whose rows stand by slug."""
        held = {
            AUDIENCES.model: self.audiences,
            KNOWLEDGE_BASES.model: self.knowledge_bases,
            TAGS.model: self.tags,
        }
        return held[model]


def check_rows(
    archive: ArchiveFile, *, progress: Callable[[str, int, int], None]
) -> Named:
    """Read the whole archive once; return what it names.

    Raises:
        InvalidArchiveError: A file is damaged, or a row may not be written, with its
            file, line, field and value.
    """
    named = Named()
    for table in TABLES:
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
    table: Table, row: Mapping[str, Any], archive: ArchiveFile, named: Named
) -> None:
    expected = {column.field for column in table.columns}
    if row.keys() != expected:
        different = ", ".join(sorted(row.keys() ^ expected))
        msg = f"the fields {different} are missing or unknown."
        raise ValueError(msg)
    for column in table.columns:
        value = row[column.field]
        if column.is_list:
            _check_pairs(column, value, archive.manifest.files[column.table].rows)
        elif column.table:
            _check_number(column, value, archive.manifest.files[column.table].rows)
        elif value is not None and column.by:
            _check_name(table, column, value, named)
        elif column.field == table.named:
            _check_names(column.field, value)
        else:
            check_value(table.field(column), value)
        if value is None and not table.field(column).null:
            msg = f"{column.field} is missing."
            raise ValueError(msg)
    _keep_names(table, row, named)


def _keep_names(table: Table, row: Mapping[str, Any], named: Named) -> None:
    if table is TAGS:
        named.usernames.update(row["experts"])
    if table in (AUDIENCES, KNOWLEDGE_BASES, TAGS):
        held = named.by_slug(table.model)
        if row["slug"] in held:
            msg = f"the slug {row['slug']!r} stands there twice."
            raise ValueError(msg)
        held[row["slug"]] = dict(row)


def _check_number(column: Column, value: object, rows: int) -> None:
    if value is not None and not (type(value) is int and 1 <= value <= rows):
        msg = f"{column.field} {value!r} is no row of {column.table}."
        raise ValueError(msg)


def _check_pairs(column: Column, value: object, rows: int) -> None:
    pairs: list[Any] = value if isinstance(value, list) else [value]
    for pair in pairs:
        near = pair[1] if isinstance(pair, list) and len(pair) == 2 else None
        if near is None or type(pair[0]) is not int or not _is_number(near):
            msg = f"{column.field} {str(pair)[:80]!r} is no pair of a row and a number."
            raise ValueError(msg)
        _check_number(column, pair[0], rows)


def _check_name(table: Table, column: Column, value: object, named: Named) -> None:
    if not isinstance(value, str):
        msg = f"{column.field} {value!r} is no name."
        raise ValueError(msg)  # noqa: TRY004  # one kind for whatever is wrong in a row
    if column.by == "username":
        _check_text("username", value, 150)
        named.usernames.add(value)
        return
    model = table.field(column).related_model
    found = named.by_slug(model).get(value) if isinstance(model, type) else None
    if found is None or found.get("facet", column.field) != column.field:
        msg = f"{column.field} {value!r} is none of the archive's."
        raise ValueError(msg)


def _check_names(field_name: str, value: object) -> None:
    names = value if isinstance(value, list) else [None]
    for name in names:
        if not isinstance(name, str) or not name:
            msg = f"{field_name} {value!r} are no names."
            raise ValueError(msg)
        _check_text(field_name, name, 150)


def check_value(field: "models.Field[Any, Any]", value: object) -> None:
    """Refuse what the model's field can't hold.

    Raises:
        ValueError: What is wrong, with the field and the value.
        TypeError: The archive does not know fields of this kind.
    """
    if value is None:
        return  # whether it may be missing is seen by the caller
    is_right = next((test for kind, test in _TESTS if isinstance(field, kind)), None)
    if is_right is None:
        msg = f"{field} is of a kind that archives do not keep"
        raise TypeError(msg)
    if not is_right(value):
        msg = f"{field.name} {str(value)[:80]!r} is not what the field holds."
        raise ValueError(msg)
    if isinstance(value, str) and not isinstance(field, models.DateTimeField):
        _check_text(field.name, value, field.max_length)
        choices = [choice for choice, _ in field.flatchoices]
        if choices and value not in choices:
            msg = f"{field.name} {value!r} is none of {', '.join(choices)}."
            raise ValueError(msg)


def _check_text(name: str, value: str, limit: int | None) -> None:
    if limit is not None and len(value) > limit:
        msg = f"{name} has {len(value)} characters and may have {limit}."
        raise ValueError(msg)
    if "\0" in value or any("\ud800" <= each <= "\udfff" for each in value):
        msg = f"{name} {value[:40]!a} holds what the database can't keep."
        raise ValueError(msg)


def _is_moment(value: object) -> bool:
    try:
        return datetime.fromisoformat(str(value)).tzinfo is not None
    except ValueError:
        return False


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(float(str(value)))


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < _INTEGER_LIMIT


def _is_big_integer(value: object) -> bool:
    return type(value) is int and -_BIG_INTEGER_LIMIT <= value < _BIG_INTEGER_LIMIT


def _is_text(value: object) -> bool:
    return isinstance(value, str)


_TESTS: "tuple[tuple[type[models.Field[Any, Any]], Callable[[object], bool]], ...]" = (
    (models.DateTimeField, _is_moment),
    (models.FloatField, _is_number),
    (models.BooleanField, lambda value: isinstance(value, bool)),
    (models.BigIntegerField, _is_big_integer),
    (models.IntegerField, _is_count),
    (models.CharField, _is_text),
    (models.TextField, _is_text),
    (models.JSONField, lambda value: isinstance(value, list | dict)),
)
