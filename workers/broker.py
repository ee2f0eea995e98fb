"""A file-based Celery broker: kombu's file system transport, made safe against kills.

kombu's own writes a message under its final name, so a reader may find it half written,
and its worker stops at such a file. It also shares a table of bindings through files
that are empty while they are written. Here a message appears complete by a rename, an
unreadable one is dropped (the sweep notifies again), and bindings are fixed.
"""

import logging
import os
import time
import uuid
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, filesystem
from kombu.utils.json import dumps, loads

logger = logging.getLogger(__name__)

_FORGOTTEN_SECONDS = 3_600


class Channel(filesystem.Channel):
    supports_fanout = False

    def __init__(self, connection: "Transport", **options: object) -> None:
        super().__init__(connection, **options)
        for file in self._in_hand().iterdir():
            # A process that held it for this long was killed.
            if time.time() - _modified(file) > _FORGOTTEN_SECONDS:
                file.unlink(missing_ok=True)

    @property
    def _folder(self) -> Path:
        return Path(self.transport_options["data_folder"])

    def _messages(self, queue: str) -> Path:
        folder = self._folder / "queues" / queue
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _in_hand(self) -> Path:
        folder = self._folder / "in_hand"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def get_table(  # type: ignore[override]  # its two parents disagree
        self, exchange: str
    ) -> list[tuple[str, str, str]]:
        return [filesystem.exchange_queue_t(exchange, "", exchange)]

    def _queue_bind(
        self, exchange: str, routing_key: str | None, pattern: str | None, queue: str
    ) -> None:
        """Do nothing: bindings are fixed."""

    def _put(  # type: ignore[override]  # its two parents disagree
        self, queue: str, payload: dict[str, Any], **_: object
    ) -> None:
        name = f"{time.time_ns():020d}-{uuid.uuid4().hex}"
        part = self._in_hand() / name
        try:
            part.write_text(dumps(payload))
            part.rename(self._messages(queue) / name)
        finally:
            part.unlink(missing_ok=True)

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        for name in sorted(os.listdir(self._messages(queue))):
            taken = self._in_hand() / f"{name}-{uuid.uuid4().hex}"
            try:
                (self._messages(queue) / name).rename(taken)
            except FileNotFoundError:  # another worker was faster
                continue
            text = taken.read_bytes()
            taken.unlink()
            try:
                message: dict[str, Any] = loads(text)
            except ValueError:
                logger.warning("The broker held an unreadable message: %r", text[:200])
            else:
                return message
        raise Empty

    def _size(self, queue: str) -> int:
        return len(os.listdir(self._messages(queue)))

    def _purge(self, queue: str) -> int:
        names = os.listdir(self._messages(queue))
        for name in names:
            (self._messages(queue) / name).unlink(missing_ok=True)
        return len(names)

    def _delete(self, queue: str, *_: object, **__: object) -> None:
        self._purge(queue)


class Transport(filesystem.Transport):
    """The transport `filesystem://`, with the transport option `data_folder`."""

    Channel = Channel
    connection_errors = (*filesystem.Transport.connection_errors, OSError)

    @property
    def default_connection_params(self) -> dict[str, object]:
        return {}


def _modified(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return time.time()


def install() -> None:
    """Register this transport for the scheme `filesystem`."""
    TRANSPORT_ALIASES["filesystem"] = f"{__name__}:Transport"
