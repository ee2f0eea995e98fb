"""A file of entries as tokens, shared by the processes of a host.

Reading an entry takes up to 30 ms of two cores, finding it here less than one: after a
restart, in a further web process and in a knowledge base too large for one process's
memory, a question need not wait for that. It holds what entries say, so an entry that
was read some days ago is used no more, and removed when others are added. Deleting the
directory while nothing runs loses nothing.
"""

import hashlib
import json
import logging
import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from accounts.loaded_once import RETRY_SECONDS
from accounts.sqlite_files import open_shared

from .reading import Tokens

logger = logging.getLogger(__name__)

Placed = tuple[str, str, str]  # an entry's place, question and text

_WAIT_SECONDS: Final = 0.5  # for other writers; then an entry is not kept
_KEPT_DAYS: Final = 7
# Part of every key: a change of how entries are read or stored gets a new number.
_FORMAT: Final = 1
# At most so many entries are removed for each one that is added, so that no question
# waits for thousands.
_REMOVED: Final = 3
_JOURNAL_BYTES: Final = 64 << 20
_TABLE: Final = """
    CREATE TABLE IF NOT EXISTS texts (
        number integer PRIMARY KEY, key blob NOT NULL UNIQUE, read real NOT NULL,
        tokens blob NOT NULL
    );
    CREATE INDEX IF NOT EXISTS texts_read ON texts (read);
"""
_ADD: Final = "INSERT OR REPLACE INTO texts (key, read, tokens) VALUES (?, ?, ?)"


class TokenFile:
    """Tokens of entries by their text and the model that read them.

    If the file cannot be used, the log says why, and nothing is found or kept for a
    minute.
    """

    def __init__(self, path: Path, *, model: str, max_bytes: int) -> None:
        """Use this file for a model with this fingerprint."""
        self._path, self._model, self._max_bytes = path, model, max_bytes
        self._opened: tuple[int, sqlite3.Connection] | None = None  # by process
        self._retry_at = 0.0  # on the monotonic clock

    def find(self, texts: Sequence[Placed]) -> dict[Placed, list[Tokens]]:
        """Return those of the texts that are in the file."""
        if time.monotonic() < self._retry_at:
            return {}
        keys = {self._key(text): text for text in texts}
        marks = ",".join("?" * len(keys))
        try:
            rows = self._sql.execute(
                f"SELECT key, tokens FROM texts WHERE key IN ({marks}) AND read > ?",  # noqa: S608  # question marks
                [*keys, _oldest()],
            ).fetchall()
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)
            return {}
        found = {keys[key]: self._intact(tokens) for key, tokens in rows}
        return {text: windows for text, windows in found.items() if windows}

    def keep(self, read: Mapping[Placed, Sequence[Tokens]]) -> None:
        """Add these texts; outdated and, once it is full, the oldest ones make room.

        While another process writes for long, they are not added.
        """
        if time.monotonic() < self._retry_at:
            return
        now = time.time()
        rows = [
            (self._key(text), now, _packed(windows)) for text, windows in read.items()
        ]
        try:
            with self._sql as sql:
                before = now if self._bytes() > self._max_bytes else _oldest()
                sql.execute(
                    "DELETE FROM texts WHERE number IN (SELECT number FROM texts"
                    " WHERE read <= ? ORDER BY read LIMIT ?)",
                    [before, _REMOVED * len(rows)],
                )
                sql.executemany(_ADD, rows)
        except (sqlite3.Error, OSError) as error:
            if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_BUSY:
                self._give_up(error)

    @property
    def _sql(self) -> sqlite3.Connection:
        own = os.getpid()  # a connection must not be used after a fork
        if self._opened is None or self._opened[0] != own:
            opened = open_shared(self._path, wait_seconds=_WAIT_SECONDS)
            opened.executescript(_TABLE)
            # What is removed must not be readable from the file.
            opened.execute("PRAGMA secure_delete = ON")
            opened.execute(f"PRAGMA journal_size_limit = {_JOURNAL_BYTES}")
            self._opened = own, opened
        return self._opened[1]

    def _bytes(self) -> int:
        (pages,), (free,), (size,) = (
            self._sql.execute(f"PRAGMA {name}").fetchone()
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def _key(self, text: Placed) -> bytes:
        parts = [_FORMAT, self._model, *text]
        return hashlib.sha256(json.dumps(parts).encode()).digest()

    def _intact(self, tokens: bytes) -> list[Tokens]:
        """Return the windows; none if they are damaged, so that they are read again."""
        try:
            return _unpacked(tokens)
        except (SafetensorError, KeyError, ValueError) as error:
            logger.warning("An entry in %s is damaged: %s", self._path, error)
            return []

    def _give_up(self, error: Exception) -> None:
        self._retry_at = time.monotonic() + RETRY_SECONDS
        logger.warning(
            "Entries as tokens are not kept in %s for %.0f seconds: %s",
            self._path, RETRY_SECONDS, error,
        )  # fmt: skip


def _oldest() -> float:
    return time.time() - _KEPT_DAYS * 86_400


def _packed(windows: Sequence[Tokens]) -> bytes:
    return save(
        {
            "lengths": np.array([len(each) for each in windows], np.int32),
            "states": np.concatenate([each.states for each in windows]),
            "ids": np.concatenate([each.ids for each in windows]),
            "parts": np.concatenate([each.parts for each in windows]),
            "vectors": np.stack([each.vectors for each in windows]),
        }
    )


def _unpacked(tokens: bytes) -> list[Tokens]:
    found = load(tokens)
    ends = np.cumsum(found["lengths"])[:-1]
    own = zip(
        *(np.split(found[name], ends) for name in ("states", "ids", "parts")),
        found["vectors"],
        strict=True,
    )
    return [Tokens(*each) for each in own]
