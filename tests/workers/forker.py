"""Forks what `python -m celery` would start, as `up` does: all that it imports is imported.

A line of its input is a request in JSON: `["start", log, *command]` is answered by the
process, `["status", process]` by its exit status, of a signal the negative number, or null
while it lives. With TESTS_IMPORT_MODELS in its environment, what loads models is imported
too, which takes longer than all the rest.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import django

from nescio.forking import import_before_fork, model_libraries
from nescio.up.processes import Child, become


def start(log: str, *command: str) -> int:
    """Start a Celery command and return its process."""
    pid = os.fork()
    if not pid:
        celery = ("celery", "-A", "tests.workers.app", *command)
        become(Child(command[0], celery, Path(log)))
        os._exit(0)
    return pid


def status(pid: int) -> int | None:
    """Return the exit status of what was started, once; None while it lives."""
    ended, found = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(found) if ended else None


def answer(name: str, *arguments: Any) -> int | None:
    """Return the answer to a request."""
    return start(*arguments) if name == "start" else status(*arguments)


if __name__ == "__main__":
    django.setup()
    import_before_fork(
        "celery.apps.beat",
        "celery.apps.worker",
        "celery.bin.celery",
        "celery.concurrency.prefork",
        "tests.workers.app",
        "workers.tasks",
        *(model_libraries() if "TESTS_IMPORT_MODELS" in os.environ else ()),
    )
    for line in sys.stdin:
        sys.stdout.write(f"{json.dumps(answer(*json.loads(line)))}\n")
        sys.stdout.flush()
