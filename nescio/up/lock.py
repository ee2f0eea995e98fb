"""One `up` for one variable directory: a lock that its holder's death releases."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nescio.up import UpError


class AlreadyServedError(UpError):
    """Another live `up` holds the variable directory."""


@contextmanager
def hold(file: Path, url: str) -> Iterator[None]:
    """Hold the lock `file` for the block; the kernel releases it when its holder dies."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        stream = file.open("a+")
    except OSError as error:
        raise UpError(
            f"{file.parent} can not be written to ({error.strerror}). Start as the user "
            "whom it belongs to, or choose another directory with NESCIO_VAR_DIR."
        ) from error
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise _already_served(file) from error
        stream.truncate(0)
        stream.write(json.dumps({"pid": os.getpid(), "url": url}))
        stream.flush()
        yield
        stream.truncate(0)


def holder(file: Path) -> int | None:
    try:
        with file.open() as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return None
    except BlockingIOError:
        return _read(file)[0]
    return None


def _already_served(file: Path) -> AlreadyServedError:
    pid, url = _read(file)
    return AlreadyServedError(
        f"{file.parent} is already served by process {pid} at {url}. Stop it with Ctrl-C "
        "in its terminal or `make stop`, or choose another directory with NESCIO_VAR_DIR."
    )


def _read(file: Path) -> tuple[int, str]:
    try:
        content = json.loads(file.read_text())
        return int(content["pid"]), str(content["url"])
    except ValueError:  # the holder is just writing it
        return 0, "an address that is not known yet"
