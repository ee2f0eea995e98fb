"""Celery's pool of processes, with locks that end with the process that holds them.

With a broker that is no event loop, as the embedded one, a child that waits for a task holds
the lock of the pipe it reads. Celery's lock is a semaphore, which outlives its holder: after
a SIGKILL, from the kernel for want of memory say, every later child waited for it for ever.

Celery takes a pool for one that forks if its module's name holds "prefork"; only then does
a child close the database connections that it inherited, which nobody would renew.
"""

import fcntl
import tempfile
from typing import Any

from billiard.pool import Pool
from celery.concurrency import prefork


class _Lock:
    """A lock between processes that the kernel takes back from a dead one."""

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
