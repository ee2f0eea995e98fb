#!/usr/bin/env python
"""Nescio's command line: `python manage.py help` lists the commands."""

import os
import sys
from contextlib import AbstractContextManager

try:
    from django.core import management
    from django.core.exceptions import ImproperlyConfigured
    from django.db.utils import OperationalError, ProgrammingError
    from psycopg.errors import UndefinedColumn, UndefinedTable
except ModuleNotFoundError as missing:
    sys.exit(
        f"{missing.name} is not installed for {sys.executable}. `make venv` installs it; "
        "then: .venv/bin/python manage.py"
    )


def _reader() -> AbstractContextManager[None]:
    """Let a command read everything: a person who may run it may read the database."""
    from accounts.acting import as_owner, unrestricted  # noqa: PLC0415  # needs settings

    # Django's own commands work on the tables themselves, as the role that connected.
    # They are looked up in Django's folder, since the list of all commands would be
    # cached before the settings are read.
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name in management.find_commands(management.__path__[0]):
        return as_owner("Django's commands")
    return unrestricted("commands")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
    try:
        with _reader():
            management.execute_from_command_line(sys.argv)
    except OperationalError as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(
            f"The database did not answer: {error}. The embedded one runs while "
            "`make up` does; DATABASE_URL names another one."
        )
    except ProgrammingError as error:
        is_old = isinstance(error.__cause__, UndefinedTable | UndefinedColumn)
        if "--traceback" in sys.argv or not is_old:
            raise
        sys.exit(
            f"The database lacks tables of this version ({str(error).splitlines()[0]}). "
            "Create them, then run this again: manage.py migrate"
        )
    except ImproperlyConfigured as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"Not started: {error}")
