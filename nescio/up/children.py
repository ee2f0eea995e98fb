"""The processes of a running system: web server, worker, scheduler.

The web server is granian with threads. Measured on two cores against gunicorn's threaded
worker, both with one process and eight threads on a view with one query: the same p50
(0.6 ms) for one client, 27 % and 74 % more requests a second for 8 and 32 clients, with a
third less p99. Both send a stream's pieces as they are made, close the generator of a
reader who has gone, and let open requests end on SIGTERM. One process: the models are
loaded once, and their work runs outside the interpreter's lock.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from nescio.up.address import Address

# Stands in the environment of everything `up` starts and of what that starts in turn,
# so that the rest of a killed run can be told from everything else.
MARK = "NESCIO_STARTED_BY_UP_FOR"


@dataclass(frozen=True, slots=True)
class Child:
    """One process to keep running."""

    name: str
    command: tuple[str, ...]
    log: Path


def children(address: Address) -> tuple[Child, ...]:
    """Return web server, worker and scheduler, in the order to start them."""
    logs = settings.PLACES.logs
    celery = (sys.executable, "-m", "celery", "--app", "nescio")
    return (
        Child(
            "web server",
            (
                sys.executable, "-m", "granian", "nescio.wsgi:application",
                "--interface", "wsgi",
                "--host", address.host, "--port", str(address.port),
                "--workers", "1",
                "--blocking-threads", str(settings.WEB_THREADS),
                "--respawn-failed-workers",
                "--workers-kill-timeout", "20",
                "--log-level", "warning",
            ),
            logs / "web.log",
        ),
        Child(
            "worker",
            (
                *celery, "worker",
                "--concurrency", str(settings.WORKER_PROCESSES),
                "--loglevel", "INFO",
                "--without-gossip", "--without-mingle",
            ),
            logs / "worker.log",
        ),
        Child(
            "scheduler",
            (*celery, "beat", "--loglevel", "INFO", "--pidfile="),
            logs / "scheduler.log",
        ),
    )  # fmt: skip


def environment(threads: int) -> Mapping[str, str]:
    """Return the environment of a child whose numeric libraries use `threads` each.

    Every library that would take all cores is told otherwise before it is loaded: on a
    busy machine two torch threads on two cores are 70 times slower than one.
    """
    pinned = {
        name: str(threads)
        for name in (
            "NESCIO_TORCH_THREADS",
            "OMP_NUM_THREADS",
            "MKL_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
            "RAYON_NUM_THREADS",
        )
    }
    return {
        **os.environ,
        **pinned,
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONUNBUFFERED": "1",
        "NESCIO_VAR_DIR": str(settings.VAR_DIR),
        "DJANGO_SETTINGS_MODULE": os.environ.get(
            "DJANGO_SETTINGS_MODULE", "nescio.settings"
        ),
        MARK: str(settings.VAR_DIR),
    }
