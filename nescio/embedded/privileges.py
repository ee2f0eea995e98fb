"""Who the embedded PostgreSQL runs as: ourselves, or a system user where we are root.

It refuses to run as root, so root hands the data directory to a system user and lets
that user pass through those above it: search permission alone, where it is missing.
"""

import logging
import os
import pwd
import shutil
import stat
import subprocess
from pathlib import Path

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
    """Make `directory`, private to `owner`: the server trusts all who reach its socket."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    if owner is not None:
        os.chown(directory, owner.pw_uid, owner.pw_gid)
        _let_through(directory.parent)
    directory.chmod(0o700)


def make_readable(installation: Path) -> None:
    """Let every user read the server's own files, which a strict umask may hide."""
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
            f"PostgreSQL may not run as root, and the system user {SYSTEM_USER!r} can not "
            "be made: neither useradd nor adduser is here. Run this as an ordinary user."
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
            f"{program} could not make the user {SYSTEM_USER!r}: {done.stderr.strip()}"
        )
