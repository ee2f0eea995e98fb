import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.db import connection

from tests.workers.brokers import celery_broker
from tests.workers.processes import (
    BEAT,
    WORKER,
    Forked,
    Forker,
    Process,
    Redis,
    environment_of,
)

__all__ = ["celery_broker"]


needs_redis = pytest.mark.skipif(
    shutil.which("redis-server") is None, reason="redis-server is not installed"
)


class Forkers:
    """A forker for each environment that was wanted."""

    def __init__(self) -> None:
        self._forkers: dict[frozenset[tuple[str, str]], Forker] = {}

    def of(self, environment: dict[str, str]) -> Forker:
        """Return the one of this environment."""
        key = frozenset(environment.items())
        if key not in self._forkers:
            self._forkers[key] = Forker(environment)
        return self._forkers[key]

    def end(self) -> None:
        """End them all."""
        for forker in self._forkers.values():
            forker.end()


class System:
    """Workers and a beat over one broker and the test's database."""

    def __init__(self, directory: Path, broker: Redis | None, forkers: Forkers) -> None:
        self.directory = directory
        self.broker = broker
        self._forkers = forkers
        self._ends = ExitStack()
        self.broker_url = broker.url if broker else "filesystem://"

    def start(self, command: tuple[str, ...] = WORKER, **environment: str) -> Process:
        """Start a worker, or another Celery command."""
        settings = environment_of(self.directory, self.broker_url, **environment)
        log = self.directory / f"{command[0]}.log"
        process = Forked(self._forkers.of(settings), command, log)
        self._ends.callback(process.end)
        return process

    def start_beat(self) -> Process:
        """Start a beat, which sweeps every second."""
        return self.start(BEAT)

    def log(self) -> str:
        """What worker and beat said."""
        return "\n".join(file.read_text() for file in self.directory.glob("*.log"))

    def close(self) -> None:
        """End every process."""
        self._ends.close()


@pytest.fixture(scope="session")
def forkers() -> Iterator[Forkers]:
    forkers = Forkers()
    yield forkers
    forkers.end()


@pytest.fixture(scope="session")
def directory(tmp_path_factory) -> Path:
    """The variable directory of all systems, so that one forker serves many of them."""
    made: Path = tmp_path_factory.mktemp("system") / "var"
    return made


@pytest.fixture(scope="session")
def redis(tmp_path_factory) -> Iterator[Redis]:
    redis = Redis(tmp_path_factory.mktemp("redis"))
    yield redis
    redis.end()


@pytest.fixture(
    params=["embedded", pytest.param("redis", marks=[pytest.mark.redis, needs_redis])]
)
def system(
    request,
    directory: Path,
    forkers: Forkers,
    transactional_db,
    celery_broker: Callable[..., object],
) -> Iterator[System]:
    """A system to start workers in; the test's own process rings the same broker."""
    directory.mkdir()
    redis = request.getfixturevalue("redis") if request.param == "redis" else None
    system = System(directory, redis, forkers)
    options = {} if redis else {"data_folder": str(directory / "broker")}
    celery_broker(system.broker_url, **options)
    yield system
    system.close()
    if redis:
        redis.empty()
    shutil.rmtree(directory)


@pytest.fixture
def effects(transactional_db) -> Iterator[Callable[[], list[int]]]:
    """The numbers that `tests.count` wrote, each as often as it did."""
    with connection.cursor() as sql:
        sql.execute("DROP TABLE IF EXISTS tests_effect")
        sql.execute("CREATE TABLE tests_effect (job uuid, number int, pid int)")

    def read() -> list[int]:
        with connection.cursor() as sql:
            sql.execute("SELECT number FROM tests_effect ORDER BY number")
            return [number for (number,) in sql.fetchall()]

    yield read
    with connection.cursor() as sql:
        sql.execute("DROP TABLE tests_effect")
