"""Celery's process pool, with locks that are released when their holder dies.

With a broker that has no event loop, such as the embedded one, a child that waits for a
task holds the lock of the pipe it reads. Celery's lock is a semaphore, which outlives
its holder: after a SIGKILL, for instance from the kernel's OOM killer, every later
child would wait for it forever.

Celery treats a pool as forking only if its module's name contains "prefork"; only then
does a child close the inherited database connections, which would never be renewed.
"""

import fcntl
import tempfile
from typing import Any

from billiard.pool import Pool
from celery.concurrency import prefork


class _Lock:
    """A lock between processes that the kernel releases when its holder dies."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # as long as its queue

    def acquire(self) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_EX)

    def release(self) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN)

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class _Pool(Pool):
    _inqueue: Any
    _outqueue: Any

    def _setup_queues(self) -> None:
        super()._setup_queues()  # type: ignore[misc]  # its types leave it out
        for queue in (self._inqueue, self._outqueue):
            queue._rlock, queue._wlock = _Lock(), _Lock()


class TaskPool(prefork.TaskPool):
    BlockingPool = _Pool
