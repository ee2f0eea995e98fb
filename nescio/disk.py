"""Check whether the disk has room for new data.

PostgreSQL stops altogether if it can't extend its log, so Nescio stops writing while a
reserve is left. On another machine's database, a full disk only shows as an error.
"""

import shutil
import time
from pathlib import Path

from django.conf import settings

_MEBIBYTE = 1024**2
_REMEMBERED_SECONDS = 60.0


class _Refusal:
    """The time when the database last reported a full disk."""

    at = float("-inf")


def note_refusal() -> None:
    """Remember that the database has just reported a full disk."""
    _Refusal.at = time.monotonic()


def problem() -> str | None:
    """Return why nothing can be stored, with the remedy, or None."""
    reserve = settings.DISK_RESERVE_MIB
    for place in {settings.VAR_DIR, Path(settings.IMPORT_DIR)}:
        free = shutil.disk_usage(place).free // _MEBIBYTE if place.exists() else reserve
        if free < reserve:
            return (
                f"The disk is full: {free} MiB are left for Nescio's files, and "
                f"{reserve} are kept free (NESCIO_DISK_RESERVE_MIB). Make room."
            )
    if time.monotonic() - _Refusal.at < _REMEMBERED_SECONDS:
        return "The disk is full: the database can store nothing. Make room there."
    return None
