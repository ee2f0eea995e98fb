"""Ids: numbers as addresses and forms bring them, any text at all, and the rows they name."""

import hashlib
from typing import Final, TypeVar

from django.db.models import Model, QuerySet
from django.http import Http404

_DIGITS: Final = 18  # one more may be beyond what a column of the database holds

Row = TypeVar("Row", bound=Model)


def number_in(text: object) -> int | None:
    """Return the whole number, 0 or more, that plain digits say; None for all else.

    No row has the id 0, so that `number_in(text) or 0` finds none where the text is no id.

    `str.isdigit` and `int` alone also take what is no plain digit, and more of them than
    the database's numbers have.
    """
    given = text if isinstance(text, str) else ""
    is_number = given.isascii() and given.isdecimal() and len(given) <= _DIGITS
    return int(given) if is_number else None


def row_at(rows: QuerySet[Row], **key: object) -> Row:
    """Return the row with this key, of those that the reader may see.

    Raises:
        Http404: There is none; the page says so, which Django's words for it don't.
    """
    found = rows.filter(**key).first()
    if found is None:
        (named,) = key.values()
        raise Http404(f"There is no {rows.model._meta.verbose_name} {named!r:.80}.")
    return found


def digest(*lines: object) -> str:
    """Return the SHA-256 of the lines, 64 hex digits."""
    return hashlib.sha256("\n".join(map(str, lines)).encode()).hexdigest()
