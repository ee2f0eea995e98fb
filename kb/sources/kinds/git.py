"""Git repositories: a branch's files, without history, checkout or running code.

The bare clone has no work tree, so that no link, filter, hook or submodule of the
repository takes effect; files are read as objects.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from urllib.parse import urlsplit

from accounts.outbound import PORTS

from .files import allowed_folder, check_size
from .interface import Bounds, Content, Listed, Place, SourceError, folders, is_read
from .web import allowed_url, basic, checked_host

_CHECK_SECONDS = 0.2
_MAX_MESSAGE = 500
_MAX_LISTING = 64 * 1024 * 1024


class Git:
    name = "git"
    label = "a Git repository"
    address_help = (
        "https://host/team/repository.git, or a path on the server; append #branch to "
        "name a branch"
    )
    lists_all = True

    def check_address(self, address: str) -> None:
        _address(address)

    @contextmanager
    def open(self, place: Place) -> Iterator[Iterator[Listed]]:
        address, branch = _address(place.address)
        with tempfile.TemporaryDirectory(prefix="nescio-git-") as folder:
            bare = Path(folder, "clone")
            _clone(address, branch, bare, place)
            yield _files(bare, place.bounds)


def _address(text: str) -> tuple[str, str]:
    """Return the repository and the branch, empty for the default branch."""
    address, _, branch = text.partition("#")
    if branch.startswith("-"):
        raise SourceError("address", f"{branch!r} is not the name of a branch.")
    if "://" in address:
        allowed_url(address)
        return address, branch
    return f"file://{allowed_folder(address)}", branch


def _clone(address: str, branch: str, bare: Path, place: Place) -> None:
    pinned = {}
    if not address.startswith("file://"):
        url = urlsplit(address)
        host = f"{url.hostname}:{url.port or PORTS[url.scheme]}"
        pinned["http.curloptResolve"] = f"{host}:{checked_host(url)}"
    if place.credential:
        pinned[f"http.{address}.extraHeader"] = (
            f"Authorization: {basic(place.credential)}"
        )
    named = ("--branch", branch) if branch else ()
    _run(
        ["clone", "--bare", "--depth=1", "--single-branch", "--no-tags", "--quiet",
         "--no-recurse-submodules", *named, "--", address, str(bare)],
        place.bounds,
        folder=bare,
        configured=pinned,
    )  # fmt: skip


def _files(bare: Path, bounds: Bounds) -> Iterator[Listed]:
    rows = _run(["ls-tree", "-r", "-z", "-l", "HEAD"], bounds, folder=bare, inside=True)
    for row in rows.split(b"\0"):
        about, _, name = row.partition(b"\t")
        if not about:
            continue
        mode, kind, blob, _size = about.decode().split()
        path = PurePosixPath(name.decode("utf-8", "replace"))
        hidden = any(part.startswith(".") for part in path.parts)
        is_file = kind == "blob" and mode.startswith("100")  # 120000 is a link
        if is_file and not hidden and is_read(path.name):
            yield _listed(bare, path, blob, about, bounds)


def _listed(
    bare: Path, path: PurePosixPath, blob: str, about: bytes, bounds: Bounds
) -> Listed:
    size = int(about.split()[3])

    def read(known: Mapping[str, str]) -> Content:
        check_size(size, bounds)
        content = _run(["cat-file", "blob", blob], bounds, folder=bare, inside=True)
        return Content(content, path.name)

    return Listed(key=path.as_posix(), marker=blob, groups=folders(path), read=read)


def _environment(configured: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with no configuration or secrets except those given."""
    configured = {
        "core.hooksPath": "/dev/null",
        "credential.helper": "",
        "http.followRedirects": "false",
        "protocol.allow": "never",
        "protocol.https.allow": "always",
        "protocol.http.allow": "always",
        "protocol.file.allow": "always",
        "gc.auto": "0",
        **configured,
    }
    environment = {
        "PATH": os.defpath,
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "GIT_CONFIG_COUNT": str(len(configured)),
    }
    for number, (key, value) in enumerate(configured.items()):
        environment[f"GIT_CONFIG_KEY_{number}"] = key
        environment[f"GIT_CONFIG_VALUE_{number}"] = value
    return environment


def _run(
    arguments: list[str],
    bounds: Bounds,
    *,
    folder: Path,
    inside: bool = False,
    configured: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """Return git's output; it is killed at a limit or when the job is cancelled."""
    git = shutil.which("git")
    if git is None:
        raise SourceError("kind", "git is not installed on this machine.")
    command = [git, *(["--git-dir", str(folder)] if inside else []), *arguments]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as said:
        alive, inherited = os.pipe()
        process = subprocess.Popen(  # noqa: S603  # addresses are checked, -- ends options
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=said,
            env=_environment(configured),
            pass_fds=(inherited,),
            start_new_session=True,
        )
        os.close(inherited)
        try:
            while process.poll() is None:
                bounds.seconds_left()
                if not inside:
                    bounds.check_room(_size(folder))
                time.sleep(_CHECK_SECONDS if not inside else 0.005)
        finally:
            _end(process, alive)
        if not inside:
            bounds.check_room(_size(folder))  # documents count when they are read
        if process.returncode:
            said.seek(0)
            message = said.read(_MAX_MESSAGE).decode("utf-8", "replace").strip()
            raise SourceError("address", f"git could not read it: {message}")
        output.seek(0)
        return output.read(max(bounds.document_bytes, _MAX_LISTING))


def _end(process: subprocess.Popen[bytes], alive: int) -> None:
    """Kill git and the processes that it started; return when none of them writes.

    All of them hold the other end of the pipe `alive`, which closes with the last one:
    `git index-pack` would go on writing into a folder that is being deleted.
    """
    with suppress(ProcessLookupError, PermissionError):  # all ended, or are zombies
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    with open(alive, "rb") as pipe:
        pipe.read()


def _size(folder: Path) -> int:
    total = 0
    for each in folder.rglob("*pack*"):
        with suppress(FileNotFoundError):  # git renames them in the meantime
            total += each.lstat().st_size
    return total
