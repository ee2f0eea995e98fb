"""Files that commands write figures to, looked at before hours are spent on them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.core.management.base import CommandError


def require_files(*paths: Path | None) -> None:
    """Make the directories that files go into, and see that the files can be written.

    Args:
        paths: Where figures go; None where none were asked for.
    """
    for path in filter(None, paths):
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                msg = "it is a directory"
                raise IsADirectoryError(msg)
            _require_access(path if path.exists() else path.parent)


def require_directories(*paths: Path | None) -> None:
    """Make directories that files go into, and see that they can be written to.

    Args:
        paths: The directories; None where none was asked for.
    """
    for path in filter(None, paths):
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
            _require_access(path)


def write_figures(path: Path, text: str) -> None:
    """Write a text that ends with a line break, and the directories above it."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text.rstrip()}\n", encoding="utf-8")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what keeps a path from being written into an error of the command.

    Raises:
        CommandError: The path can't be written. The exit code is 2.
    """
    try:
        yield
    except OSError as error:
        msg = f"{path} can't be written: {error}. Name another path."
        raise CommandError(msg, returncode=2) from error


def _require_access(path: Path) -> None:
    if not os.access(path, os.W_OK):
        msg = "permission denied"
        raise PermissionError(msg)
