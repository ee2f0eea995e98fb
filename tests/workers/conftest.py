import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.db import connection

from tests.workers.brokers import celery_broker
from tests.workers.processes import BEAT, WORKER, Process, Redis, celery, environment_of

__all__ = ["celery_broker"]

needs_redis = pytest.mark.skipif(
    shutil.which("redis-server") is None, reason="redis-server is not installed"
)


class System:
    """Workers and a beat over one broker and the test's database."""

    def __init__(self, directory: Path, broker: Redis | None) -> None:
        self.directory = directory
        self.broker = broker
        self._ends = ExitStack()
        if broker:
            self._ends.callback(broker.end)
        self.broker_url = broker.url if broker else "filesystem://"

    def start(self, command: tuple[str, ...] = WORKER, **environment: str) -> Process:
        """Start a worker, or another Celery command."""
        settings = environment_of(self.directory, self.broker_url, **environment)
        process = celery(command, self.directory, settings)
        self._ends.callback(process.end)
        return process

    def start_beat(self) -> Process:
        """Start a beat, which sweeps every second."""
        return self.start(BEAT)

    def restart_broker(self) -> None:
        """Let Redis come back at its old address, empty."""
        assert self.broker
        self.broker = Redis(self.directory, self.broker.port)
        self._ends.callback(self.broker.end)

    def log(self) -> str:
        """What worker and beat said."""
        return "\n".join(file.read_text() for file in self.directory.glob("*.log"))

    def close(self) -> None:
        """End every process."""
        self._ends.close()


@pytest.fixture(
    params=["embedded", pytest.param("redis", marks=[pytest.mark.redis, needs_redis])]
)
def system(
    request,
    tmp_path: Path,
    transactional_db,
    celery_broker: Callable[..., object],
) -> Iterator[System]:
    """A system to start workers in; the test's own process rings the same broker."""
    redis = Redis(tmp_path) if request.param == "redis" else None
    system = System(tmp_path, redis)
    options = {} if redis else {"data_folder": str(tmp_path / "broker")}
    celery_broker(system.broker_url, **options)
    yield system
    system.close()


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
