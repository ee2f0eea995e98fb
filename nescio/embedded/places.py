"""Locations of the embedded components' files, all under the variable directory.

PostgreSQL refuses to run as root. So root gives its data directory to a system user,
and adds search permission to the directories above it where it is missing.
"""

import hashlib
import logging
import os
import platform
import pwd
import secrets
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import Final
from urllib.parse import quote

# A Unix socket's path may hold 107 bytes on Linux and 103 on macOS; PostgreSQL adds
# "/.s.PGSQL.5432" to the directory.
_SOCKET_DIRECTORY_LIMIT = 103 - len("/.s.PGSQL.5432")


class Places:
    """The files below one variable directory.

    Attributes:
        activations: Cached activations of language models, kept between trainings; may
            be deleted.
        counters: The throttles' counters, if there is no Redis.
        metrics: The metrics of the web server's processes for `/metrics`; separate for
            each host, since processes in two containers may have the same id.
        verifier_tokens: Entries as the verifier reads them; may be deleted.
        scheduled: Touched whenever beat has sent a task.
        up_file: Values of a running `up` for scripts: url, token, admin_password (mode
            0600).
    """

    def __init__(self, var: Path) -> None:
        self.var: Final = var
        self.postgres_data: Final = var / "postgres"
        self.postgres_socket_directory: Final = _socket_directory(var)
        self.broker: Final = var / "broker"
        self.models: Final = var / "models"
        self.activations: Final = var / "activations"
        self.verifier_tokens: Final = var / "verifier" / "tokens.sqlite3"
        self.exports: Final = var / "exports"
        self.imports: Final = var / "imports"
        self.counters: Final = var / "counters" / "throttles.sqlite3"
        self.scheduled: Final = var / "scheduled"
        self.metrics: Final = var / "metrics" / platform.node()
        self.secret_key_file: Final = var / "secret_key"
        self.logs: Final = var / "log"
        self.up_lock: Final = var / "up.lock"
        self.credentials_file: Final = var / "credentials.json"
        self.up_file: Final = var / "up.json"

    @property
    def database_url(self) -> str:
        """The URL of the embedded database, in the form of `DATABASE_URL`."""
        return f"postgresql://nescio@{quote(str(self.postgres_socket_directory), safe='')}/nescio"


def _socket_directory(var: Path) -> Path:
    inside = var / "run"
    if len(os.fsencode(inside)) <= _SOCKET_DIRECTORY_LIMIT:
        return inside
    digest = hashlib.sha256(os.fsencode(var)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"nescio-{digest}"


def local_secret_key(file: Path) -> str:
    """Return the secret key stored in `file`, created on first use with mode 0600.

    If two processes start at once, the first to link its key into place wins.
    """
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        own = file.with_name(f"{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
        descriptor = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(secrets.token_urlsafe(64))
        try:
            os.link(own, file)
        except FileExistsError:
            pass
        finally:
            own.unlink()
    return file.read_text().strip()


LOG_BYTES = 10 * 1024**2


def make_private(directory: Path) -> None:
    """Create a directory with mode 0700, or set this mode on an existing one."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.chmod(0o700)


def rotate_log(log: Path) -> None:
    """Copy a long log to `.log.1` and truncate it, so that open files remain usable.

    Lines written between the two steps are lost, one at most.
    """
    if log.exists() and log.stat().st_size > LOG_BYTES:
        shutil.copyfile(log, log.with_suffix(".log.1"))
        os.truncate(log, 0)


def log_tail(log: Path, lines: int = 12) -> str:
    try:
        with log.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - 16_384))
            text = stream.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


logger = logging.getLogger(__name__)

SYSTEM_USER = "pgserver"


def server_user() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        _add_system_user()
        return pwd.getpwnam(SYSTEM_USER)


def hand_over(directory: Path, owner: pwd.struct_passwd | None) -> None:
    """Create `directory`, private to `owner`: the server trusts all socket clients."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    if owner is not None:
        os.chown(directory, owner.pw_uid, owner.pw_gid)
        _let_through(directory.parent)
    directory.chmod(0o700)


def make_readable(installation: Path) -> None:
    """Make the server's installed files readable to all, despite a strict umask."""
    _let_through(installation.parent)
    if _is_open(installation) and _is_open(installation / "bin" / "postgres"):
        return
    for path in (installation, *installation.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | (mode & (stat.S_IRUSR | stat.S_IXUSR)) >> 6)


def _is_open(path: Path) -> bool:
    wanted = stat.S_IROTH | stat.S_IXOTH
    return path.stat().st_mode & wanted == wanted


def _let_through(directory: Path) -> None:
    for place in (directory, *directory.parents):
        mode = place.stat().st_mode
        if not mode & stat.S_IXOTH:
            logger.warning(
                "Letting the user %s pass through %s (mode %o to %o): PostgreSQL may "
                "not run as root.",
                SYSTEM_USER,
                place,
                stat.S_IMODE(mode),
                stat.S_IMODE(mode | stat.S_IXOTH),
            )
            place.chmod(mode | stat.S_IXOTH)


def _add_system_user() -> None:
    program = shutil.which("useradd") or shutil.which("adduser")
    if program is None:
        raise OSError(
            f"PostgreSQL may not run as root, and the system user {SYSTEM_USER!r} cannot "
            "be added: useradd and adduser are missing. Run this as an ordinary user."
        )
    arguments = (
        ["--system", "--no-create-home", "--shell", "/bin/false", SYSTEM_USER]
        if program.endswith("useradd")
        else ["-S", "-H", "-s", "/bin/false", SYSTEM_USER]
    )
    done = subprocess.run(  # noqa: S603  # a fixed program and fixed arguments
        [program, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise OSError(
            f"{program} failed to add the user {SYSTEM_USER!r}: {done.stderr.strip()}"
        )
