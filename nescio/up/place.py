"""The address, the lock of the variable directory and the embedded database of `up`."""

import errno
import fcntl
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nescio.embedded import postgres
from nescio.embedded.places import Places, rotate_log
from nescio.up import UpError

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # compared, not bound


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    @property
    def reachable_host(self) -> str:
        return _EVERYWHERE.get(self.host, self.host)

    @property
    def url(self) -> str:
        host = self.reachable_host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    def require_free(self) -> None:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # As servers do: a recently closed connection must not block the port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((self.host, self.port))
                probe.listen(1)
            except OSError as error:
                raise UpError(self._explain(error)) from error

    def _explain(self, error: OSError) -> str:
        if error.errno == errno.EADDRINUSE:
            return (
                f"Port {self.port} on {self.host} is in use by another program. Choose "
                f"another one: NESCIO_PORT={self.port + 1} make up"
            )
        return (
            f"Cannot listen on {self.host} port {self.port}: {error.strerror}. Choose "
            "others with NESCIO_HOST and NESCIO_PORT."
        )


# A lock allows only one `up` for each variable directory.


class AlreadyServedError(UpError):
    """Another live `up` holds the variable directory."""


@contextmanager
def hold(file: Path, url: str) -> Iterator[None]:
    """Hold the lock `file` within the block; the process's death releases it, too."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        stream = file.open("a+")
    except OSError as error:
        raise UpError(
            f"{file.parent} cannot be written to ({error.strerror}). Start as the user "
            "who owns it, or choose another directory with NESCIO_VAR_DIR."
        ) from error
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise _already_served(file) from error
        stream.truncate(0)
        stream.write(json.dumps({"pid": os.getpid(), "url": url}))
        stream.flush()
        yield
        stream.truncate(0)


def holder(file: Path) -> int | None:
    try:
        with file.open() as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return None
    except BlockingIOError:
        return _read(file)[0]
    return None


def _already_served(file: Path) -> AlreadyServedError:
    pid, url = _read(file)
    return AlreadyServedError(
        f"{file.parent} is already served by process {pid} at {url}. Stop it with Ctrl-C "
        "in its terminal or `make stop`, or choose another directory with NESCIO_VAR_DIR."
    )


def _read(file: Path) -> tuple[int, str]:
    try:
        content = json.loads(file.read_text())
        return int(content["pid"]), str(content["url"])
    except ValueError:  # the holder is just writing it
        return 0, "an address that is not known yet"


_POLL_SECONDS = 2.0


class EmbeddedDatabase:
    """The embedded PostgreSQL during one `up`, restarted if it ends.

    A server that was already running is left running, unless a killed `up` started it.
    """

    def __init__(self, places: Places, say: Callable[[str], None]) -> None:
        self._places = places
        self._say = say
        self._is_ours = False
        self._stopping = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="database-watcher")

    def start(self) -> None:
        running = postgres.running(self._places)
        self._is_ours = running is None or running == _recorded(self._places)
        try:
            postgres.start(self._places)
        except (postgres.PostgresError, OSError) as error:
            raise UpError(str(error)) from error
        self._record()
        self._watcher.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._watcher.ident is not None:
            self._watcher.join()
        if self._is_ours:
            postgres.stop(self._places)
            _record_file(self._places).unlink(missing_ok=True)

    def _record(self) -> None:
        server = postgres.running(self._places)
        if self._is_ours and server is not None:
            content = {"pid": server.pid, "started_at": server.started_at}
            _record_file(self._places).write_text(json.dumps(content))

    def _watch(self) -> None:
        while not self._stopping.wait(_POLL_SECONDS):
            rotate_log(postgres.log_file(self._places))
            if postgres.is_running(self._places):
                continue
            self._say("The embedded PostgreSQL ended; it is started again.")
            self._is_ours = True
            try:
                postgres.start(self._places)
            except (postgres.PostgresError, OSError) as error:
                self._say(str(error))
            else:
                self._record()
                self._say("The embedded PostgreSQL is back.")


def stop_left_over_database(places: Places) -> bool:
    running = postgres.running(places)
    if running is None or running != _recorded(places):
        return False
    postgres.stop(places)
    _record_file(places).unlink(missing_ok=True)
    return True


def _record_file(places: Places) -> Path:
    return places.var / "up.postgres.json"


def _recorded(places: Places) -> postgres.Server | None:
    try:
        return postgres.Server(**json.loads(_record_file(places).read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
