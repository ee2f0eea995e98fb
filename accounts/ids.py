"""Parsing of ids from addresses and forms, which may be any text; rows by their ids."""

import hashlib
from typing import Final, TypeVar

from django.db.models import Model, QuerySet
from django.http import Http404

_DIGITS: Final = 18  # with one more, it may not fit a bigint column

Row = TypeVar("Row", bound=Model)


def number_in(text: object) -> int | None:
    """Return the non-negative integer in a text of ASCII digits, or None.

    No row has the id 0, so `number_in(text) or 0` finds no row if the text is not an
    id.

    `str.isdigit` and `int` alone also accept other digits, and more of them than fit
    the database's integers.
    """
    given = text if isinstance(text, str) else ""
    is_number = given.isascii() and given.isdecimal() and len(given) <= _DIGITS
    return int(given) if is_number else None


def row_at(rows: QuerySet[Row], **key: object) -> Row:
    """Return the row with this key among those that the reader may see.

    Raises:
        Http404: There is none; unlike Django's own message, this one names the key.
    """
    found = rows.filter(**key).first()
    if found is None:
        (named,) = key.values()
        raise Http404(f"There is no {rows.model._meta.verbose_name} {named!r:.80}.")
    return found


def digest(*lines: object) -> str:
    """Return the SHA-256 of the lines, 64 hex digits."""
    return hashlib.sha256("\n".join(map(str, lines)).encode()).hexdigest()
