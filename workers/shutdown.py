"""Tells a worker's child processes that the worker is shutting down.

A warm shutdown lets a task end, which may take an hour; a job rather gives its lease back
after the present step. Children inherit one shared byte: no lock that a killed process
could leave held, no signal that could break a step off.
"""

import mmap

from celery.signals import worker_init, worker_shutting_down

_flag = mmap.mmap(-1, 1)


def is_stopping() -> bool:
    """Tell whether this worker was asked to shut down."""
    return _flag[0] != 0


@worker_shutting_down.connect
def _announce(**_: object) -> None:
    _flag[0] = 1


@worker_init.connect
def _begin(**_: object) -> None:
    _flag[0] = 0
