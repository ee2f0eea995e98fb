"""Ids: numbers as addresses and forms bring them, any text at all; digests of contents."""

import hashlib
from typing import Final

_DIGITS: Final = 18  # one more may be beyond what a column of the database holds


def number_in(text: object) -> int | None:
    """Return the whole number, 0 or more, that plain digits say; None for all else.

    No row has the id 0, so that `number_in(text) or 0` finds none where the text is no id.

    `str.isdigit` and `int` alone also take what is no plain digit, and more of them than
    the database's numbers have.
    """
    given = text if isinstance(text, str) else ""
    is_number = given.isascii() and given.isdecimal() and len(given) <= _DIGITS
    return int(given) if is_number else None


def digest(*lines: object) -> str:
    """Return the SHA-256 of the lines, 64 hex digits."""
    return hashlib.sha256("\n".join(map(str, lines)).encode()).hexdigest()
