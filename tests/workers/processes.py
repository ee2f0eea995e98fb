"""Real worker, beat and Redis processes for tests, each ended with the test."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import redis
from django.db import connection

from tests.waiting import GIVE_UP_SECONDS, wait_until

ROOT = Path(__file__).resolve().parents[2]
WORKER = (
    "worker", "--concurrency", "1", "--loglevel", "INFO",
    "--without-gossip", "--without-mingle", "--without-heartbeat",
)  # fmt: skip
BEAT = ("beat", "--loglevel", "INFO", "--pidfile", "")


class Process:
    """A child in a session of its own, so that a kill can be meant for all of it."""

    def __init__(
        self, arguments: tuple[str, ...], log: Path, environment: Mapping[str, str]
    ) -> None:
        with log.open("ab") as output:
            self._child = subprocess.Popen(
                arguments,
                cwd=ROOT,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.pid = self._child.pid
        self.log = log

    def children(self) -> list[int]:
        """The processes that it forked and that live."""
        listed = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return [int(pid) for pid in listed.read_text().split()]

    def kill_group(self) -> None:
        """SIGKILL it with all its children."""
        _kill(-self.pid)
        self._wait()

    def kill_parent(self) -> None:
        """SIGKILL it alone; its children are left to themselves."""
        _kill(self.pid)
        self._wait()

    def kill_child(self) -> None:
        """SIGKILL what it forked last; it forks anew."""
        for pid in self.children()[-1:]:
            _kill(pid)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask it to end, wait for it, and return its exit status."""
        _kill(self.pid, number)
        return self._wait()

    def end(self) -> None:
        """Leave nothing of it behind."""
        _kill(-self.pid)
        self._wait()

    def _wait(self) -> int:
        return self._child.wait(GIVE_UP_SECONDS)


class Forker:
    """Starts Celery commands of one environment, each forked from what imported them.

    So does `up`. To import them takes longer than most of what a test has them do.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._program = subprocess.Popen(
            [sys.executable, "-m", "tests.workers.forker"],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, *request: object) -> Any:
        """Return its answer to a request, as `forker` says."""
        assert self._program.stdin
        assert self._program.stdout
        print(json.dumps(request), file=self._program.stdin, flush=True)
        return json.loads(self._program.stdout.readline())

    def end(self) -> None:
        """End it, and nothing that it forked."""
        with self._program as program:
            program.kill()


class Forked(Process):
    """A Celery command that a forker started."""

    def __init__(self, forker: Forker, command: tuple[str, ...], log: Path) -> None:
        self.log = log
        self._forker = forker
        self._status: int | None = None
        self.pid = forker.ask("start", str(log), *command)

    def _wait(self) -> int:
        wait_until(self._has_ended)
        assert self._status is not None
        return self._status

    def _has_ended(self) -> bool:
        if self._status is None:
            self._status = self._forker.ask("status", self.pid)
        return self._status is not None


class Redis(Process):
    """A Redis of the tests' own on a free port; keeps nothing on disk."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.port = free_port()
        self.start()

    def start(self) -> None:
        """Start it, at its old address where it was ended."""
        super().__init__(
            (
                "redis-server", "--port", str(self.port), "--bind", "127.0.0.1",
                "--save", "", "--appendonly", "no", "--dir", str(self._directory),
            ),
            self._directory / "redis.log",
            {},
        )  # fmt: skip
        self.url = f"redis://127.0.0.1:{self.port}/0"
        wait_until(self.empty)

    def empty(self) -> bool:
        """Empty it, and tell whether it was there for that."""
        try:
            with redis.Redis(port=self.port) as client:
                return bool(client.flushall())
        except redis.ConnectionError:
            return False


def celery(
    command: tuple[str, ...],
    directory: Path,
    environment: Mapping[str, str],
    app: str = "tests.workers.app",
) -> Process:
    """Start a Celery command over `app`."""
    arguments = (sys.executable, "-m", "celery", "-A", app, *command)
    return Process(arguments, directory / f"{command[0]}.log", environment)


def environment_of(
    directory: Path, broker_url: str, database_url: str = "", **more: str
) -> dict[str, str]:
    """Return what a process needs to work on the test's database, with short leases."""
    return {
        "NESCIO_VAR_DIR": str(directory),
        "NESCIO_SECRET_KEY": "only for tests " * 4,
        "DATABASE_URL": database_url or database_url_of_test(),
        "CELERY_BROKER_URL": broker_url,
        "NESCIO_JOB_LEASE_SECONDS": "3",
        "NESCIO_JOB_SWEEP_SECONDS": "1",
        **more,
    }


def database_url_of_test() -> str:
    """Return the address of the database that this test works on."""
    database = connection.settings_dict
    host = quote(str(database["HOST"]), safe="")
    port = f":{database['PORT']}" if database["PORT"] else ""
    password = f":{quote(database['PASSWORD'])}" if database["PASSWORD"] else ""
    return f"postgresql://{database['USER']}{password}@{host}{port}/{database['NAME']}"


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _kill(pid: int, number: int = signal.SIGKILL) -> None:
    try:
        if pid < 0:
            os.killpg(-pid, number)
        else:
            os.kill(pid, number)
    except ProcessLookupError:
        pass
