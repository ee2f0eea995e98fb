"""The embedded parts of one run: started where none is given, stopped if they are ours."""

import json
import threading
from collections.abc import Callable
from pathlib import Path

from nescio.embedded import postgres
from nescio.embedded.places import Places, rotate_log
from nescio.up import UpError

_POLL_SECONDS = 2.0


class EmbeddedDatabase:
    """The embedded PostgreSQL during one `up`.

    A server that was running before is left running, unless a killed `up` started it.
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
