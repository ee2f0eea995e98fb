"""SQLite files that the processes of one host share, for data that may be lost."""

import sqlite3
import time
from pathlib import Path


def open_shared(path: Path, *, wait_seconds: float) -> sqlite3.Connection:
    """Open a file, or create it for its owner only; writers wait that long for others.

    The connection may be passed between threads, but used by one at a time.

    Raises:
        sqlite3.Error, OSError: It cannot be opened or created.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)  # so that the files beside it get its mode
    opened = sqlite3.connect(path, timeout=wait_seconds, check_same_thread=False)
    _write_ahead(opened, wait_seconds)
    # What a crash of the host loses is counted or computed again.
    opened.execute("PRAGMA synchronous = OFF")
    return opened


def _write_ahead(opened: sqlite3.Connection, wait_seconds: float) -> None:
    """Switch to write-ahead logging, so that readers and writers don't block each other.

    If several processes open a new file at once, SQLite fails all but one without
    waiting, so this retries.
    """
    last = time.monotonic() + wait_seconds
    while True:
        try:
            opened.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > last:
                raise
            time.sleep(0.01)
        else:
            return
