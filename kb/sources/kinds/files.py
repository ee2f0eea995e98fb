"""Folders of files, below the directories that the operator allows."""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from django.conf import settings

from .interface import Bounds, Content, Listed, Place, SourceError, folders, is_read

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def allowed_path(address: str) -> Path:
    """Return an address as a path below a directory of `NESCIO_SOURCE_DIRECTORIES`.

    Links are resolved first, so that none leads out of it.
    """
    roots = [Path(each).resolve() for each in settings.SOURCE_DIRECTORIES]
    if not roots:
        raise SourceError(
            "address",
            "No directory may be followed; an operator names those that may in "
            "NESCIO_SOURCE_DIRECTORIES.",
        )
    try:
        path = Path(address).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise SourceError("address", f"{address!r} is not a path: {error}.") from error
    if not Path(address).is_absolute() or not any(
        path.is_relative_to(root) for root in roots
    ):
        raise SourceError(
            "address",
            f"{address!r} is not below {' or '.join(map(str, roots))}; name a path that "
            "is, or have an operator change NESCIO_SOURCE_DIRECTORIES.",
        )
    if not path.exists():
        raise SourceError("address", f"There is no {address!r} on this machine.")
    return path


def allowed_folder(address: str) -> Path:
    path = allowed_path(address)
    if not path.is_dir():
        raise SourceError(
            "address", f"{address!r} is not a folder; name the one it is in."
        )
    return path


def files_below(root: Path, bounds: Bounds) -> Iterator[PurePosixPath]:
    """Yield the regular files below a folder, without links and hidden files."""
    for here, below, names in os.walk(root, onerror=_fail):
        bounds.seconds_left()
        below[:] = sorted(each for each in below if not each.startswith("."))
        for name in sorted(names):
            path = Path(here, name)
            if not name.startswith(".") and stat.S_ISREG(path.lstat().st_mode):
                yield PurePosixPath(path.relative_to(root))


def _fail(error: OSError) -> None:
    # A folder that can't be read must not look like an empty one.
    raise SourceError(
        "address", f"{error.filename!r} cannot be read: {error.strerror}."
    )


def read_file(
    root: Path, path: PurePosixPath, bounds: Bounds, *, is_document: bool = True
) -> bytes:
    """Return a file's bytes, checking again that it is below `root`.

    A file that holds many documents may be as large as a DOCX may unpack to.
    """
    limit = bounds.document_bytes if is_document else bounds.unpacked_bytes
    full = root / path
    try:
        if not full.resolve(strict=True).is_relative_to(root):
            raise SourceError("file", f"{path} leads out of its folder.")
        with os.fdopen(os.open(full, _FLAGS), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise SourceError("file", f"{path} is no longer a file.")
            content = file.read(limit + 1)
    except OSError as error:
        raise SourceError("file", f"It cannot be read: {error.strerror}.") from error
    if is_document:
        check_size(len(content), bounds)
    elif len(content) > limit:
        raise SourceError(
            "address",
            f"{path} has more than {settings.IMPORT_MAX_UNPACKED_MIB} MiB; export a part, "
            "or raise NESCIO_IMPORT_MAX_UNPACKED_MIB.",
        )
    else:
        bounds.take(len(content))
    return content


def check_size(size: int, bounds: Bounds) -> None:
    """Raise if a document is too large; otherwise count it as read."""
    if size > bounds.document_bytes:
        raise SourceError(
            "file",
            f"It has more than {settings.IMPORT_MAX_MIB} MiB; split it, or raise "
            "NESCIO_IMPORT_MAX_MIB.",
        )
    bounds.take(size)


class Folder:
    name = "folder"
    label = "a folder of files"
    address_help = "the folder's path on the server, such as /srv/knowledge"
    lists_all = True

    def check_address(self, address: str) -> None:
        allowed_folder(address)

    @contextmanager
    def open(self, place: Place) -> Iterator[Iterator[Listed]]:
        root = allowed_folder(place.address)
        yield (
            _listed(root, path, place.bounds)
            for path in files_below(root, place.bounds)
            if is_read(path.name)
        )


def _listed(root: Path, path: PurePosixPath, bounds: Bounds) -> Listed:
    found = (root / path).lstat()

    def read(known: Mapping[str, str]) -> Content:
        return Content(read_file(root, path, bounds), path.name)

    return Listed(
        key=path.as_posix(),
        marker=f"{found.st_mtime_ns} {found.st_size}",
        groups=folders(path),
        read=read,
    )
