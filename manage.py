#!/usr/bin/env python
"""Nescio's command line: `python manage.py help` lists what it can do."""

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
    """Let a command read everything: who may run it may read the database."""
    from accounts.acting import as_owner, unrestricted  # noqa: PLC0415  # needs settings

    # Django's own commands work on the tables themselves, as the role that signed in. They
    # are looked for in their place: the list of all commands must not be made, and is
    # kept, before the settings are read.
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
            "`make up` does; another one is named by DATABASE_URL."
        )
    except ProgrammingError as error:
        is_old = isinstance(error.__cause__, UndefinedTable | UndefinedColumn)
        if "--traceback" in sys.argv or not is_old:
            raise
        sys.exit(
            f"The database has not all tables of this version ({str(error).splitlines()[0]}). Make "
            "them, then run this again: manage.py migrate"
        )
    except ImproperlyConfigured as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"Not started: {error}")
