"""Entries as a table for a spreadsheet: CSV, streamed, with cells that never run."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import QuerySet
from django.http import StreamingHttpResponse

from kb.documents.models import Document
from kb.entries.models import Entry
from kb.text import spreadsheet_cells

MEDIA_TYPE = "text/csv; charset=utf-8"
COLUMNS = (
    "id", "knowledge_base", "document", "source", "section", "question", "text", "state",
    "origin", "confidence", "audience", "language", "valid_until", "owner",
    "product_line", "line_of_business", "verified_by", "verified_at", "revision", "created_at", "updated_at",
)  # fmt: skip

_PATHS = (
    "pk", "knowledge_base__slug", "document__title", "document__source",
    "section__heading", "question", "text", "state", "origin", "confidence",
    "audience__slug", "language", "valid_until", "owner__username",
    "product_line__slug", "line_of_business__slug", "verified_by__username", "verified_at", "revision_number", "created_at", "updated_at",
)  # fmt: skip
_OF_DOCUMENT = slice(2, 5)
_AT_ONCE = 1000
# Without it a spreadsheet takes the letters for those of its own country.
_BYTE_ORDER_MARK = "\ufeff"


def csv_response(
    entries: QuerySet[Entry], reader: AbstractBaseUser | AnonymousUser
) -> StreamingHttpResponse:
    """Return the table as a file to download, streamed."""
    return StreamingHttpResponse(
        csv_lines(entries, reader),
        content_type=MEDIA_TYPE,
        headers={
            "Content-Disposition": 'attachment; filename="entries.csv"',
            "Cache-Control": "no-store",
        },
    )


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
    yield COLUMNS
    # By id in batches: a cursor would hold a transaction as long as somebody downloads.
    ids = entries.order_by("pk").values_list("pk", flat=True)
    last = 0
    while chosen := list(ids.filter(pk__gt=last)[:_AT_ONCE]):
        last = chosen[-1]
        rows = Entry.objects.filter(pk__in=chosen).with_revision_number().order_by("pk")
        batch = list(rows.values_list(*_PATHS, "document_id"))
        seen = set(
            Document.objects.visible_to(reader)
            .filter(pk__in={row[-1] for row in batch} - {None})
            .values_list("pk", flat=True)
        )
        for *values, document_id in batch:
            if document_id not in seen:
                values[_OF_DOCUMENT] = [None] * 3
            yield [_cell(value) for value in values]


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value.isoformat() if isinstance(value, datetime) else str(value)
