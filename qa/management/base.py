"""What the commands share: errors, argument types, and files that figures are written to."""

import argparse
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from accounts.exceptions import NescioError


class Command(BaseCommand):
    """A command that ends with exit code 2 and a sentence where it can't go on."""

    def execute(self, *args: Any, **options: Any) -> str | None:  # noqa: ANN401  # Django's
        try:
            return super().execute(*args, **options)
        except NescioError as error:
            raise CommandError(str(error), returncode=2) from error

    def console(self, *, wrap: bool = False) -> Console:
        """Return standard output; long lines are left whole unless `wrap` is set."""
        return Console(file=self.stdout, highlight=wrap, soft_wrap=not wrap)  # type: ignore[arg-type]  # a text stream but by name

    @property
    def errors(self) -> Console:
        return Console(file=self.stderr)  # type: ignore[arg-type]  # the same


# Types of arguments: each raises ArgumentTypeError for what it does not take.


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        msg = f"{text} is not a positive number"
        raise argparse.ArgumentTypeError(msg)
    return number


def share(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 1:
        msg = f"{text} is not between 0 and 1"
        raise argparse.ArgumentTypeError(msg)
    return number


def above_zero(text: str) -> float:
    number = float(text)
    if not 0 < number < math.inf:
        msg = f"{text} is not above 0"
        raise argparse.ArgumentTypeError(msg)
    return number


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError as error:
            msg = f"{text} is not a whole number"
            raise argparse.ArgumentTypeError(msg) from error
        if number < least:
            msg = f"{text} is less than {least:,}"
            raise argparse.ArgumentTypeError(msg)
        if most is not None and number > most:
            msg = f"{text} is more than {most:,}"
            raise argparse.ArgumentTypeError(msg)
        return number

    return read


def find_asker(username: str) -> User:
    """Return the active user of that name; without a name the first superuser."""
    active = User.objects.filter(is_active=True)
    if not username:
        found = active.filter(is_superuser=True).order_by("pk").first()
        remedy = "Name one with --as USER, or make one: manage.py createsuperuser"
        missing = "There is no superuser to ask as."
    else:
        found = active.filter(username=username).first()
        known = ", ".join(active.values_list("username", flat=True)[:10]) or "none"
        missing = f"There is no active user {username!r}."
        remedy = f"There are: {known}."
    if found is None:
        raise CommandError(f"{missing} {remedy}", returncode=2)
    return found


# Files that figures are written to, checked before hours are spent on them.


def require_files(*paths: Path | None) -> None:
    for path in filter(None, paths):
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                msg = "it is a directory"
                raise IsADirectoryError(msg)
            _require_access(path if path.exists() else path.parent)


def require_directories(*paths: Path | None) -> None:
    for path in filter(None, paths):
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
            _require_access(path)


def write_figures(path: Path, text: str) -> None:
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text.rstrip()}\n", encoding="utf-8")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what keeps a path from being written into an error of the command."""
    try:
        yield
    except OSError as error:
        msg = f"{path} can't be written: {error}. Name another path."
        raise CommandError(msg, returncode=2) from error


def _require_access(path: Path) -> None:
    if not os.access(path, os.W_OK):
        msg = "permission denied"
        raise PermissionError(msg)
