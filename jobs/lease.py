"""Leases on jobs: the claim, the heartbeat that renews it, and its release.

`Job.attempts` is the fencing token: it grows with every claim, and each write is
conditional on its value, so a worker that has lost its lease can no longer change the
job.
"""

import logging
import os
import socket
import threading
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import UUID

import psutil
from django.conf import settings
from django.db import Error, connection, transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Greatest, Now

from accounts.ids import digest
from jobs.exceptions import LeaseLostError
from jobs.models import Job, JobQuerySet

logger = logging.getLogger(__name__)

ERROR_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write to one job, until another run claims it."""

    job_id: UUID
    attempt: int

    def held(self) -> JobQuerySet:
        return Job.objects.filter(
            pk=self.job_id, attempts=self.attempt, state=Job.State.RUNNING
        )

    def lost(self) -> LeaseLostError:
        return LeaseLostError(
            f"Job {self.job_id} is no longer held by attempt {self.attempt}."
        )


@cache
def _place() -> str:
    """Return an id of this boot and PID namespace; "" if not on Linux.

    Processes that see each other's PIDs share it. Host names will not do: containers
    and machines may have the same one.
    """
    boot = Path("/proc/sys/kernel/random/boot_id")
    if not boot.exists():  # not Linux
        return ""
    pids = Path("/proc/self/ns/pid").stat().st_ino
    return digest(boot.read_text(), pids)[:12]


def _is_gone(holder: str) -> bool:
    pid = int(holder.split(":")[-2])
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def end_leases_of_the_dead() -> int:
    """End the leases of processes that were killed on this host; return how many.

    Leases of other machines and containers, and of a process whose PID has been reused,
    end when they expire.
    """
    if not _place():
        return 0
    held = Job.objects.filter(
        state=Job.State.RUNNING, worker__endswith=f":{_place()}", lease_until__gt=Now()
    )
    gone = [each for each in {*held.values_list("worker", flat=True)} if _is_gone(each)]
    if not gone:
        return 0
    ended = held.filter(worker__in=gone).update(lease_until=Now(), notified_at=None)
    logger.warning("Ended %d leases of processes that were killed: %s", ended, gone)
    return ended


def claim(job_id: UUID) -> Job | None:
    """Claim a due job for this process; return None if there is nothing to do.

    Only one of several workers gets it. A job that was cancelled, or that made no
    progress in `max_attempts` runs, is finished here.
    """
    with transaction.atomic():
        job = (
            Job.objects.due()
            .select_for_update(skip_locked=True)
            .filter(pk=job_id)
            .first()
        )
        if job is None:
            return None
        row = Job.objects.filter(pk=job_id)
        if job.cancel_requested:
            row.update(state=Job.State.CANCELLED, lease_until=None, finished_at=Now())
            return None
        if job.attempts_without_progress >= job.max_attempts:
            lost = (
                f"Given up after {job.attempts_without_progress} runs without progress: the worker "
                f"{job.worker} was lost in mid-step. {job.error}"
            )
            row.update(
                state=Job.State.FAILED,
                error=displayable(lost),
                lease_until=None,
                finished_at=Now(),
            )
            logger.error("Job %s (%s): %s", job_id, job.kind, lost)
            return None
        row.update(
            state=Job.State.RUNNING,
            attempts=F("attempts") + 1,
            attempts_without_progress=F("attempts_without_progress") + 1,
            worker=f"{socket.gethostname()[:150]}:{os.getpid()}:{_place()}",
            lease_until=Now() + settings.JOB_LEASE,
            started_at=Coalesce("started_at", Now()),
        )
        job.refresh_from_db()
    return job


def finish(lease: Lease, state: Job.State, **values: object) -> None:
    _write(lease, state=state, lease_until=None, finished_at=Now(), **values)


def give_back(
    lease: Lease, *, wait: timedelta | None = None, error: str = "", counts: bool
) -> None:
    """Put the job back into the queue, for another run at once or after `wait`.

    `counts` is whether this run, if it made no progress, counts as one without
    progress.
    """
    values: dict[str, object] = {"error": displayable(error)}
    if not counts:
        values["attempts_without_progress"] = Greatest(
            F("attempts_without_progress") - 1, 0
        )
    _write(
        lease,
        state=Job.State.QUEUED,
        lease_until=None,
        notified_at=None,
        not_before=None if wait is None else Now() + wait,
        **values,
    )


def displayable(text: str) -> str:
    """Return `text` as PostgreSQL can store it: bounded, no NUL, no lone surrogates."""
    clean = text.replace("\0", "\N{SYMBOL FOR NULL}").encode(errors="replace").decode()
    return clean[:ERROR_CHARACTERS]


def _write(lease: Lease, **values: object) -> None:
    if lease.held().update(**values) == 0:
        raise lease.lost()


class Heartbeat:
    """A thread that renews a lease, on its own database connection, while a run works.

    A step locks the row and renews the lease itself, so a beat that finds the row
    locked is skipped. If the database is unavailable, the next beat tries again.
    """

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._beat, name=f"heartbeat-{lease.job_id}", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _beat(self) -> None:
        pause = settings.JOB_LEASE.total_seconds() / 3
        while not self._stop.wait(pause):
            try:
                renew(self._lease)
            except Error:
                logger.warning(
                    "Job %s: the lease could not be renewed.",
                    self._lease.job_id,
                    exc_info=True,
                )
            finally:
                connection.close()


def renew(lease: Lease) -> None:
    """Extend the lease by its full length, unless a step is doing so right now."""
    with transaction.atomic():
        rows = (
            lease.held()
            .select_for_update(skip_locked=True, no_key=True)
            .values_list("pk")
        )
        if rows:
            lease.held().update(lease_until=Now() + settings.JOB_LEASE)
