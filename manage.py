#!/usr/bin/env python
"""Nescio's command line: `python manage.py help` lists what it can do."""

import os
import sys
from contextlib import AbstractContextManager

try:
    from django.core.management import execute_from_command_line, get_commands
    from django.db.utils import OperationalError
except ModuleNotFoundError as missing:
    sys.exit(
        f"{missing.name} is not installed for {sys.executable}. `make venv` installs it; "
        "then: .venv/bin/python manage.py"
    )

# Django's own commands work on the tables themselves, as the role that signed in.
_DJANGOS = "django.core"


def _reader() -> AbstractContextManager[None]:
    """Let a command read everything: whoever may run it may read the database."""
    from accounts.acting import as_owner, unrestricted  # noqa: PLC0415  # needs settings

    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if get_commands().get(name) == _DJANGOS:
        return as_owner("Django's commands")
    return unrestricted("commands")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
    try:
        with _reader():
            execute_from_command_line(sys.argv)
    except OperationalError as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(
            f"The database did not answer: {error}. The embedded one runs while "
            "`make up` does; another one is named by DATABASE_URL."
        )
