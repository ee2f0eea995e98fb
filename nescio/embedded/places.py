"""Where the embedded parts keep their files, all under the variable directory."""

import hashlib
import os
import secrets
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

# A Unix socket's path may hold 107 bytes on Linux and 103 on macOS; PostgreSQL adds
# "/.s.PGSQL.5432" to the directory.
_SOCKET_DIRECTORY_LIMIT = 103 - len("/.s.PGSQL.5432")


@dataclass(frozen=True, slots=True)
class Places:
    var: Path

    @property
    def postgres_data(self) -> Path:
        return self.var / "postgres"

    @property
    def postgres_socket_directory(self) -> Path:
        inside = self.var / "run"
        if len(os.fsencode(inside)) <= _SOCKET_DIRECTORY_LIMIT:
            return inside
        digest = hashlib.sha256(os.fsencode(self.var)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"nescio-{digest}"

    @property
    def database_url(self) -> str:
        """The embedded database, as `DATABASE_URL` would name it."""
        return f"postgresql://nescio@{quote(str(self.postgres_socket_directory), safe='')}/nescio"

    @property
    def broker(self) -> Path:
        return self.var / "broker"

    @property
    def models(self) -> Path:
        return self.var / "models"

    @property
    def activations(self) -> Path:
        """What language models held inside, kept between trainings; may be deleted."""
        return self.var / "activations"

    @property
    def exports(self) -> Path:
        return self.var / "exports"

    @property
    def imports(self) -> Path:
        return self.var / "imports"

    @property
    def secret_key_file(self) -> Path:
        return self.var / "secret_key"

    @property
    def logs(self) -> Path:
        return self.var / "log"

    @property
    def up_lock(self) -> Path:
        return self.var / "up.lock"

    @property
    def credentials_file(self) -> Path:
        return self.var / "credentials.json"

    @property
    def up_file(self) -> Path:
        """What a running `up` tells scripts: url, token, admin_password (mode 0600)."""
        return self.var / "up.json"


def local_secret_key(file: Path) -> str:
    """Return the secret key kept in `file`, made on first use with mode 0600.

    Of two processes that start at once the first to link its key into place wins.
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
    """Make a directory that its owner alone may enter, also of one that is there."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.chmod(0o700)


def rotate_log(log: Path) -> None:
    """Move what a long log holds to `.log.1`; a process that appends to it goes on there.

    What is written in between the two steps is lost, a line at most.
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
