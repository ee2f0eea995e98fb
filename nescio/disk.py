"""Is there room to store what is asked and written?

PostgreSQL that can't extend its log stops altogether, so writing ends while there is still
a reserve; one on another machine is only known by its error.
"""

import shutil
import time
from pathlib import Path

from django.conf import settings

_MEBIBYTE = 1024**2
_REMEMBERED_SECONDS = 60.0


class _Refusal:
    """When the database last said that it has no space."""

    at = float("-inf")


def note_refusal() -> None:
    """Remember that the database has just refused to store for want of space."""
    _Refusal.at = time.monotonic()


def problem() -> str | None:
    """Return what keeps us from storing anything, with the remedy."""
    reserve = settings.DISK_RESERVE_MIB
    for place in {settings.VAR_DIR, Path(settings.IMPORT_DIR)}:
        free = shutil.disk_usage(place).free // _MEBIBYTE if place.exists() else reserve
        if free < reserve:
            return (
                f"The disk is full: {free} MiB are left where Nescio stores, and "
                f"{reserve} are kept free (NESCIO_DISK_RESERVE_MIB). Make room."
            )
    if time.monotonic() - _Refusal.at < _REMEMBERED_SECONDS:
        return "The disk is full: the database can store nothing. Make room there."
    return None
