"""One run of a job: steps that commit work with its progress, and how a run ends."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import (
    InterfaceError,
    InternalError,
    OperationalError,
    connection,
    transaction,
)
from django.db.models.functions import Now

from accounts.acting import unrestricted
from accounts.exceptions import UnavailableError
from accounts.prepared import execute
from jobs import services as notify
from jobs.exceptions import (
    JobCancelledError,
    JobInterruptedError,
    LeaseLostError,
    RetryableJobError,
)
from jobs.lease import (
    Heartbeat,
    Lease,
    claim,
    displayable,
    end_leases_of_the_dead,
    finish,
    give_back,
)
from jobs.models import Job, JobQuerySet

logger = logging.getLogger(__name__)

RETRYABLE = (
    OperationalError,
    InternalError,  # the server aborted a transaction
    InterfaceError,
    ConnectionError,
    TimeoutError,
    UnavailableError,
    RetryableJobError,
)
_MAX_WAIT_SECONDS = 60
_REPORT_SECONDS = 1.0
# If a host vanishes in the middle of a step, the row stays locked until TCP gives up.
_SILENCE_IN_STEP_MILLISECONDS = 30_000
_SETTLE_PAUSES_SECONDS = (0.2, 0.5, 1, 2)


@dataclass(slots=True)
class Step:
    """The progress that one step commits together with its work."""

    done: int
    total: int | None
    cursor: dict[str, Any] = field(default_factory=dict)

    def advance(
        self,
        *,
        done: int | None = None,
        total: int | None = None,
        cursor: Mapping[str, Any] | None = None,
    ) -> None:
        """Set the progress that is stored with the step's work."""
        if done is not None:
            self.done = done
        if total is not None:
            self.total = total
        if cursor is not None:
            self.cursor = dict(cursor)


class JobRun:
    """The interface of a handler to its job: parameters, cursor and steps."""

    def __init__(
        self, job: Job, *, is_stopping: Callable[[], bool] = lambda: False
    ) -> None:
        self.job_id: UUID = job.pk
        self.parameters: Mapping[str, Any] = job.parameters
        self.owner_id: int | None = job.owner_id
        self.done: int = job.done
        self.total: int | None = job.total
        self.cursor: dict[str, Any] = job.cursor
        self.lease = Lease(job.pk, job.attempts)
        self._is_stopping = is_stopping

    @contextmanager
    def step(self) -> Iterator[Step]:
        """Do a piece of the work in one transaction, together with its progress.

        A step only runs while this run holds the job, so a killed worker's job
        continues after the last finished step and no step is done twice. Compute first
        and write inside the step: the row is locked meanwhile, and a step that sends
        the database nothing for 30 s is aborted.
        """
        if self._is_stopping():
            raise self._interrupted()
        step = Step(self.done, self.total, self.cursor)
        with transaction.atomic(durable=True):
            self._lock()
            yield step
            self._store(step)
        self.done, self.total, self.cursor = step.done, step.total, step.cursor

    @property
    def owner(self) -> User | None:
        # An owner who was deleted leaves None; no user has the id 0.
        return User.objects.filter(pk=self.owner_id or 0).first()

    def reporter(self) -> Callable[[str, int, int], None]:
        """Return a function that stores progress every second and obeys cancellation.

        It takes what is being done, how much of it is done, and the total.
        """
        stored_what, stored_at = "", 0.0

        def report(what: str, done: int, total: int) -> None:
            nonlocal stored_what, stored_at
            now = time.monotonic()
            is_early = now - stored_at < _REPORT_SECONDS and done < total
            if what == stored_what and is_early:
                return
            stored_what, stored_at = what, now
            with self.step() as step:
                step.advance(done=done, total=total, cursor={"doing": what})

        return report

    def check(self) -> None:
        """Raise what the next step would raise; for long work between two steps."""
        if self._is_stopping():
            raise self._interrupted()
        self._require(self.lease.held())

    def _interrupted(self) -> JobInterruptedError:
        return JobInterruptedError(
            f"Job {self.job_id} stops after {self.done}: the worker is shutting down."
        )

    def _lock(self) -> None:
        execute(
            "SELECT set_config('idle_in_transaction_session_timeout', %s, true)",
            [str(_SILENCE_IN_STEP_MILLISECONDS)],
        )
        self._require(self.lease.held().select_for_update(no_key=True))

    def _require(self, row: JobQuerySet) -> None:
        """Raise if another run holds the job by now, or if it was cancelled."""
        cancel_requested = row.values_list("cancel_requested", flat=True).first()
        if cancel_requested is None:
            raise self.lease.lost()
        if cancel_requested:
            raise JobCancelledError(
                f"Job {self.job_id} was cancelled after {self.done}."
            )

    def _store(self, step: Step) -> None:
        values: dict[str, object] = {
            "done": step.done,
            "total": step.total,
            "cursor": step.cursor,
            "lease_until": Now() + settings.JOB_LEASE,
        }
        if (step.done, step.cursor) != (self.done, self.cursor):
            values["attempts_without_progress"] = 0
        self.lease.held().update(**values)


Handler = Callable[[JobRun], dict[str, object]]


def run_job(
    job_id: UUID,
    handlers: Mapping[str, Handler],
    *,
    is_stopping: Callable[[], bool] = lambda: False,
) -> None:
    """Claim the job and run it to its end; do nothing if it is not due.

    An exception in the handler ends the job as failed and is stored as its error,
    unless it is one of `RETRYABLE`: then another run resumes from the cursor a little
    later.
    """
    if is_stopping():
        # This worker cannot take the job: the next sweep notifies another one.
        Job.objects.filter(pk=job_id).update(notified_at=None)
        return
    end_leases_of_the_dead()  # the job may have been held by a process that was killed
    job = claim(job_id)
    if job is None:
        return
    logger.info("Job %s (%s): attempt %d begins.", job.pk, job.kind, job.attempts)
    run = JobRun(job, is_stopping=is_stopping)
    handler = handlers.get(job.kind)
    if handler is None:
        known = ", ".join(sorted(handlers)) or "none"
        msg = f"No handler for the kind {job.kind!r}; this worker knows: {known}."
        finish(run.lease, Job.State.FAILED, error=displayable(msg))
        logger.error("Job %s: %s", job.pk, msg)
        return
    try:
        with Heartbeat(run.lease):
            _work(job, run, handler)
    except LeaseLostError as error:
        logger.warning("%s", error)


def _work(job: Job, run: JobRun, handler: Handler) -> None:
    lease = run.lease
    try:
        with unrestricted("jobs"):
            result = handler(run)
        finish(lease, Job.State.SUCCEEDED, result=result, error="")
    except LeaseLostError:
        raise
    except JobCancelledError:
        _settle(lambda: finish(lease, Job.State.CANCELLED))
    except JobInterruptedError:
        _hand_over(job, lease)
    except SystemExit:  # SIGTERM to this process, or a cold shutdown
        _hand_over(job, lease)
        raise
    except RETRYABLE as error:
        reason = _describe(error)
        _settle(lambda: _retry_later(job, lease, reason))
    except Exception as error:
        reason = _describe(error)
        _settle(lambda: finish(lease, Job.State.FAILED, error=reason))
        raise
    else:
        logger.info("Job %s (%s) succeeded.", job.pk, job.kind)


def _hand_over(job: Job, lease: Lease) -> None:
    _settle(lambda: give_back(lease, counts=False))
    notify.notify_worker(job.pk, job.kind)
    logger.info("Job %s is given back: this worker is shutting down.", lease.job_id)


def _retry_later(job: Job, lease: Lease, reason: str) -> None:
    attempts = lease.held().values_list("attempts_without_progress", flat=True).first()
    if attempts is not None and attempts >= job.max_attempts:
        logger.error("Job %s (%s) failed: %s", job.pk, job.kind, reason)
        finish(lease, Job.State.FAILED, error=reason)
        return
    seconds = min(2 ** (attempts or 0), _MAX_WAIT_SECONDS)
    logger.warning(
        "Job %s (%s) continues in %d s: %s", job.pk, job.kind, seconds, reason
    )
    give_back(lease, wait=timedelta(seconds=seconds), error=reason, counts=True)


def _describe(error: Exception) -> str:
    return displayable(f"{type(error).__name__}: {error}")


def _settle(write: Callable[[], None]) -> None:
    """Write how a run ended, waiting for a database that restarts.

    If the database stays away, the lease expires and the sweep lets another run
    continue.
    """
    for pause_seconds in _SETTLE_PAUSES_SECONDS:
        try:
            return write()
        except (OperationalError, InterfaceError):
            logger.warning("The end of a run could not be written.", exc_info=True)
            connection.close()
            time.sleep(pause_seconds)
    return write()
