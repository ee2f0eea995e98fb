"""What several commands take on the command line."""

import argparse
import math
from collections.abc import Callable

from django.contrib.auth.models import User
from django.core.management.base import CommandError


def positive(text: str) -> int:
    """Read an integer of at least 1.

    Raises:
        ArgumentTypeError: It is less.
    """
    number = int(text)
    if number < 1:
        msg = f"{text} is not a positive number"
        raise argparse.ArgumentTypeError(msg)
    return number


def share(text: str) -> float:
    """Read a number in [0, 1].

    Raises:
        ArgumentTypeError: It is outside.
    """
    number = float(text)
    if not 0 <= number <= 1:
        msg = f"{text} is not between 0 and 1"
        raise argparse.ArgumentTypeError(msg)
    return number


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return what reads an integer of at least `least` and, if given, at most `most`.

    What it returns raises ArgumentTypeError for all else.
    """

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


def above_zero(text: str) -> float:
    """Read a finite number above 0.

    Raises:
        ArgumentTypeError: It is 0, less, or not finite.
    """
    number = float(text)
    if not 0 < number < math.inf:
        msg = f"{text} is not above 0"
        raise argparse.ArgumentTypeError(msg)
    return number


# Who a command asks as, and so what it may see.


def find_asker(username: str) -> User:
    """Return the active user of that name; without a name the first superuser.

    Raises:
        CommandError: There is none, with exit code 2.
    """
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
