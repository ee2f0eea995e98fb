"""The embedded server under every way to be killed; each test has a server of its own."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import psycopg
import pytest

from nescio.embedded import postgres
from nescio.embedded.places import Places, server_user

pytestmark = pytest.mark.system


@pytest.fixture
def places():
    # Not under pytest's own directory, which every session of pytest closes to others.
    with tempfile.TemporaryDirectory(prefix="nescio-test-") as directory:
        places = Places(Path(directory) / "var")
        yield places
        postgres.stop(places)


@pytest.fixture(scope="module")
def stopped_var():
    """A variable directory whose server was made, started and stopped in good order."""
    with tempfile.TemporaryDirectory(prefix="nescio-test-") as directory:
        places = Places(Path(directory) / "var")
        postgres.start(places)
        postgres.stop(places)
        yield places.var


@pytest.fixture
def made(places, stopped_var):
    """Places whose server was made before; to make one takes longer than all the rest."""
    subprocess.run(["cp", "-a", stopped_var, places.var], check=True)
    return places


def _connect(places):
    return psycopg.connect(places.database_url, autocommit=True)


def _as_owner(places):
    return psycopg.connect(
        host=str(places.postgres_socket_directory),
        user="postgres",
        dbname="postgres",
        autocommit=True,
    )


def _starter(places):
    return subprocess.Popen(
        [sys.executable, "-c", _START, str(places.var)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _wait_for_sessions_that_wait(connection, count):
    give_up_at = time.monotonic() + 180
    while time.monotonic() < give_up_at:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            " AND backend_type = 'client backend'"  # and no vacuum
        ).fetchone()
        if row == (count,):
            return
        time.sleep(0.05)
    raise AssertionError(f"Never {count} sessions that wait for a lock.")


def _process(places):
    server = postgres.running(places)
    assert server is not None
    return psutil.Process(server.pid)


def test_start_makes_starts_and_is_done_the_second_time(places):
    assert not postgres.is_running(places)

    assert postgres.start(places) is True
    first = postgres.running(places)
    assert postgres.start(places) is False

    assert postgres.running(places) == first
    with _connect(places) as connection:
        version = connection.execute("SHOW server_version_num").fetchone()
    assert int(version[0]) >= 180_000


def test_stop_ends_it_and_what_was_written_stays(made):
    postgres.start(made)
    with _connect(made) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS number")

    postgres.stop(made)
    assert not postgres.is_running(made)
    postgres.start(made)

    with _connect(made) as connection:
        assert connection.execute("SELECT number FROM kept").fetchone() == (42,)


def test_nobody_else_reaches_socket_or_data(made):
    postgres.start(made)

    for directory in (made.postgres_data, made.postgres_socket_directory):
        assert directory.stat().st_mode & 0o077 == 0


def test_killed_server_recovers_what_was_committed(made):
    postgres.start(made)
    with _connect(made) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS number")
        server = _process(made)
        server.kill()
        assert not postgres.wait_for_ends([server], 120)
    assert not postgres.is_running(made)

    assert postgres.start(made) is True

    with _connect(made) as connection:
        assert connection.execute("SELECT number FROM kept").fetchone() == (42,)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")
def test_server_whose_parent_does_not_wait_for_it_is_stopped(made, monkeypatch):
    monkeypatch.setattr(postgres, "STOP_SECONDS", 60)
    careless = subprocess.Popen(
        [sys.executable, "-c", _CARELESS + _START + _SLEEP, str(made.var)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert careless.stdout
        assert careless.stdout.readline() == "True\n"
        server = _process(made)
        assert server.ppid() == careless.pid

        postgres.stop(made)

        assert not postgres.is_running(made)
        assert server.status() == psutil.STATUS_ZOMBIE
    finally:
        careless.kill()
        careless.communicate()


def test_pid_file_that_names_another_process_is_not_believed(made):
    postgres.start(made)
    file = made.postgres_data / "postmaster.pid"
    content = file.read_text().splitlines()
    postgres.stop(made)
    file.write_text("\n".join([str(os.getpid()), *content[1:]]) + "\n")

    assert not postgres.is_running(made)
    assert postgres.start(made) is True

    with _connect(made) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_socket_lock_of_a_dead_server_that_nobody_waited_for_is_not_believed(made):
    postgres.start(made)
    lock = made.postgres_socket_directory / ".s.PGSQL.5432.lock"
    content = lock.read_text().splitlines()
    postgres.stop(made)
    # Of its own user, as a zombie is: PostgreSQL takes any such process for a server.
    owner = server_user()
    with subprocess.Popen(
        ["/bin/sleep", "600"],
        user=None if owner is None else owner.pw_uid,
        group=None if owner is None else owner.pw_gid,
    ) as other:
        lock.write_text("\n".join([str(other.pid), *content[1:]]) + "\n")
        started = postgres.start(made)
        other.kill()

    assert started is True
    with _connect(made) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_killed_first_start_leaves_nothing_that_is_taken_for_whole(places):
    half = places.var / "postgres.new-123"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    places.postgres_data.mkdir()

    postgres.start(places)

    assert not half.exists()
    with _connect(places) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("after_seconds", [0.1, 0.4, 0.8])
def test_first_start_that_is_killed_anywhere_is_made_good(places, after_seconds):
    starter = subprocess.Popen(
        [sys.executable, "-c", _START, str(places.var)], start_new_session=True
    )
    time.sleep(after_seconds)
    os.killpg(starter.pid, signal.SIGKILL)
    starter.wait()

    postgres.start(places)

    with _connect(places) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_killed_starter_whose_session_still_creates_the_database_is_waited_for(made):
    postgres.start(made)
    with _as_owner(made) as owner, _as_owner(made) as blocker:
        owner.execute("DROP DATABASE nescio")
        with blocker.transaction():
            # Lets everybody look for the database, and nobody create it.
            blocker.execute("LOCK TABLE pg_database IN SHARE MODE")
            killed = _starter(made)
            _wait_for_sessions_that_wait(owner, 1)
            killed.kill()
            killed.communicate()
            second = _starter(made)
            _wait_for_sessions_that_wait(owner, 2)
        output, errors = second.communicate(timeout=180)

    assert output.strip() == "False", errors
    with _connect(made) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_server_that_a_killed_starter_still_launches_is_taken(made):
    postgres.start(made)
    first = postgres.running(made)

    # As a starter does that has looked just before that server wrote its file.
    postgres._launch(made)

    assert postgres.running(made) == first
    with _connect(made) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_foreign_files_in_its_place_are_not_touched(places):
    places.postgres_data.mkdir(parents=True)
    letter = places.postgres_data / "letter.txt"
    letter.write_text("Dear reader")

    with pytest.raises(postgres.PostgresError, match="Move it away"):
        postgres.start(places)

    assert letter.read_text() == "Dear reader"


def test_data_of_another_release_is_refused_with_the_remedy(places):
    places.postgres_data.mkdir(parents=True)
    (places.postgres_data / "PG_VERSION").write_text("16\n")

    with pytest.raises(postgres.PostgresError, match=r"PostgreSQL 16.*restore"):
        postgres.start(places)


def test_processes_that_start_it_at_once_get_one_server(places):
    starters = [_starter(places) for _ in range(4)]

    said = [starter.communicate(timeout=600)[0].strip() for starter in starters]

    assert sorted(said) == ["False", "False", "False", "True"]


def test_its_failure_shows_the_end_of_its_log(made):
    postgres.start(made)
    postgres.stop(made)
    with (made.postgres_data / "postgresql.conf").open("a") as stream:
        stream.write("no_such_setting = 1\n")

    with pytest.raises(postgres.PostgresError, match="no_such_setting"):
        postgres.start(made)


# Gets the server as its child, as the first process of a container does.
_CARELESS = """
import ctypes
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
"""
_SLEEP = """
import time
sys.stdout.flush()
time.sleep(300)
"""
_ROOT = Path(__file__).resolve().parents[2]
_START = f"""
import sys
sys.path.insert(0, {str(_ROOT)!r})
from pathlib import Path
from nescio.embedded import postgres
from nescio.embedded.places import Places
print(postgres.start(Places(Path(sys.argv[1]))))
"""
