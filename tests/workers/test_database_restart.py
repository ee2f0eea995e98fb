"""A database of the test's own, restarted and crashed while a real worker works on it."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from nescio.embedded import postgres
from nescio.embedded.places import Places
from tests.waiting import wait_until
from tests.workers.processes import BEAT, ROOT, WORKER, celery, environment_of

pytestmark = pytest.mark.system


@pytest.fixture
def places() -> Iterator[Places]:
    # pytest's own directories are closed to the user that PostgreSQL runs as.
    directory = Path(tempfile.mkdtemp(prefix="nescio-test-"))
    places = Places(directory)
    postgres.start(places)
    yield places
    postgres.stop(places)
    shutil.rmtree(directory)


def python(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env={**os.environ, **environment},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


def crash(places: Places) -> None:
    """SIGKILL the server's first process, which takes the others with it."""
    pid = int((places.postgres_data / "postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)
    # Until it is reaped, PostgreSQL takes it for a server that lives.
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


def test_a_job_goes_on_where_it_was_after_its_database_restarted_and_crashed(places):
    environment = environment_of(places.var, "filesystem://", places.database_url)
    python(environment, "manage.py", "migrate", "--verbosity", "0")
    with psycopg.connect(places.database_url, autocommit=True) as sql:
        sql.execute("CREATE TABLE tests_effect (job uuid, number int, pid int)")
    may_end = places.var / "may_end"
    parameters = {"n": 10, "pause": 0.02, "may_end": str(may_end)}
    enqueue = (
        "import django; django.setup(); from jobs.services import enqueue; "
        f"print(enqueue('tests.count', {parameters}).pk)"
    )
    job_id = python(
        {**environment, "DJANGO_SETTINGS_MODULE": "nescio.settings"}, "-c", enqueue
    )

    def row() -> tuple[str, int]:
        with psycopg.connect(places.database_url) as sql:
            query = "SELECT state, done FROM jobs_job WHERE id = %s"
            (row,) = sql.execute(query, [job_id]).fetchall()
            return row

    with ExitStack() as processes:
        for command in (WORKER, BEAT):
            process = celery(command, places.var, environment)
            processes.callback(process.end)
        wait_until(lambda: row()[1] >= 20)
        postgres.stop(places)
        time.sleep(1)
        postgres.start(places)
        before = row()[1]
        wait_until(lambda: row()[1] >= before + 20)
        crash(places)
        may_end.touch()
        postgres.start(places)
        wait_until(lambda: row()[0] not in ("queued", "running"))

    state, done = row()
    assert state == "succeeded"
    with psycopg.connect(places.database_url) as sql:
        effects = sql.execute("SELECT number FROM tests_effect ORDER BY 1").fetchall()
    assert effects == [(number,) for number in range(1, done + 1)]
