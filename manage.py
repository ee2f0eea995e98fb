#!/usr/bin/env python
"""Nescio's command line: `python manage.py help` lists what it can do."""

import os
import sys

try:
    from django.core.management import execute_from_command_line
    from django.db.utils import OperationalError
except ModuleNotFoundError as missing:
    sys.exit(
        f"{missing.name} is not installed for {sys.executable}. `make venv` installs it; "
        "then: .venv/bin/python manage.py"
    )

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nescio.settings")
    try:
        execute_from_command_line(sys.argv)
    except OperationalError as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(
            f"The database did not answer: {error}. The embedded one runs while "
            "`make up` does; another one is named by DATABASE_URL."
        )
