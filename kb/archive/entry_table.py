"""Entries as a table for a spreadsheet: CSV, streamed, with cells that never run."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import QuerySet
from django.http import StreamingHttpResponse

from accounts.rest import csv_download
from kb.documents.models import Document
from kb.entries.models import Entry
from kb.entries.values import SHOWN
from kb.interface.api import NAMED_BY
from kb.text import spreadsheet_cells

_OTHERWISE = {
    "document": {"document": "document__title", "source": "document__source"},
    "section": {"section": "section__heading"},
    "review_interval_days": {},
    "created_at": {"revision": "revision_number", "created_at": "created_at"},
}
_OF_DOCUMENT = {"document", "source", "section"}
_AT_ONCE = 1000
# Without it a spreadsheet takes the letters for those of its own country.
_BYTE_ORDER_MARK = "\ufeff"


def _paths() -> Iterator[tuple[str, str]]:
    yield "id", "pk"
    for name in SHOWN:
        by = NAMED_BY.get(Entry._meta.get_field(name).related_model)
        plain = {name: f"{name}__{by}" if by else name}
        yield from _OTHERWISE.get(name, plain).items()


_PATHS = dict(_paths())
COLUMNS = tuple(_PATHS)


def csv_response(
    entries: QuerySet[Entry], reader: AbstractBaseUser | AnonymousUser
) -> StreamingHttpResponse:
    return csv_download(csv_lines(entries, reader), "entries")


def csv_lines(
    entries: QuerySet[Entry], reader: AbstractBaseUser | AnonymousUser
) -> Iterator[str]:
    """Yield a heading and a line for each entry, oldest first, in bounded memory.

    Each cell is written by `spreadsheet_cells.inert`. Times are ISO 8601. Documents that
    the reader may not see leave their cells empty.

    Args:
        entries: What the reader may see.
    """
    yield _BYTE_ORDER_MARK
    yield from spreadsheet_cells.csv_lines(_rows(entries, reader))


def _rows(
    entries: QuerySet[Entry], reader: AbstractBaseUser | AnonymousUser
) -> Iterator[Sequence[str]]:
    yield list(_PATHS)
    # By id in batches: a cursor would hold a transaction as long as somebody downloads.
    ids = entries.order_by("pk").values_list("pk", flat=True)
    last = 0
    while chosen := list(ids.filter(pk__gt=last)[:_AT_ONCE]):
        last = chosen[-1]
        rows = Entry.objects.filter(pk__in=chosen).with_revision_number().order_by("pk")
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
