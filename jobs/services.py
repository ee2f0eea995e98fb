"""Enqueue, cancel, retry and prune jobs, and notify workers of those due or lost.

A notification may be lost, duplicated or late. Only the moment at which a job begins
depends on it, because the sweep sends it again; so no request fails when the broker is
down.
"""

import logging
from collections.abc import Mapping
from datetime import timedelta
from uuid import UUID

from celery import current_app
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.db.models.functions import Now
from kombu.exceptions import KombuError
from opentelemetry import propagate

from accounts.exceptions import ConflictError
from accounts.people import AnyUser
from accounts.request_ids import current_request_id
from jobs.exceptions import JobNotFoundError, JobStateError
from jobs.lease import end_leases_of_the_dead
from jobs.models import Job

logger = logging.getLogger(__name__)

RUN_TASK = "workers.run_job"
REQUEST_ID = "request_id"  # a key of `Job.origin`, beside those of the trace
# One retry repairs a connection that a restarted broker has closed.
_RETRY = {"max_retries": 1, "interval_start": 0, "interval_max": 0.2}


def queue_of(kind: str) -> str:
    queue: str = settings.JOB_QUEUES.get(kind, settings.CELERY_TASK_DEFAULT_QUEUE)
    return queue


def notify_worker(job_id: UUID, kind: str) -> bool:
    """Notify a worker on the queue of this kind; return False if the broker is down."""
    try:
        current_app.send_task(
            RUN_TASK, args=[str(job_id)], queue=queue_of(kind), retry_policy=_RETRY
        )
    except (KombuError, OSError):
        logger.warning(
            "Job %s: the broker is unavailable; the next sweep notifies again.",
            job_id,
            exc_info=True,
        )
        return False
    Job.objects.filter(pk=job_id).update(notified_at=Now())
    return True


MAX_NOTIFIED_AT_ONCE = 500


def sweep() -> int:
    """Notify a worker again of each due job with an old notification; return how many.

    Two sweeps may run at the same time: a job is claimed only once, and one that the
    other sweep has locked is skipped.
    """
    end_leases_of_the_dead()
    # A notification this old is considered lost if its job is still due.
    lost_after = settings.JOB_LEASE * 2 / 3
    lost = Q(notified_at__isnull=True) | Q(notified_at__lt=Now() - lost_after)
    with transaction.atomic():
        due = Job.objects.due().filter(lost).order_by("created_at")
        locked = due.select_for_update(skip_locked=True, no_key=True)
        found = dict(locked.values_list("pk", "kind")[:MAX_NOTIFIED_AT_ONCE])
        Job.objects.filter(pk__in=found).update(notified_at=Now())
    ids = list(found)
    for count, job_id in enumerate(ids):
        if not notify_worker(job_id, found[job_id]):
            # The broker is down: do not let each of the remaining jobs wait for it.
            Job.objects.filter(pk__in=ids[count:]).update(notified_at=None)
            return count
    return len(ids)


# Starting, stopping, restarting and deleting jobs


def enqueue(
    kind: str,
    parameters: Mapping[str, object],
    *,
    owner: AbstractBaseUser | None = None,
    idempotency_key: str = "",
    total: int | None = None,
) -> Job:
    """Create a job and notify a worker once the caller's transaction has committed.

    If an unfinished job has the same `idempotency_key`, return that one instead.
    """
    origin = {REQUEST_ID: current_request_id()}
    propagate.inject(origin)  # the trace, if there is one
    values = {
        "kind": kind,
        "parameters": dict(parameters),
        "origin": origin,
        "owner_id": None if owner is None else owner.pk,
        "total": total,
    }
    if not idempotency_key:
        job, is_new = Job.objects.create(**values), True
    else:
        job, is_new = _get_or_create(idempotency_key, values)
    if is_new:
        transaction.on_commit(lambda: notify_worker(job.pk, job.kind), robust=True)
    return job


def request_cancel(job_id: UUID, *, by: AnyUser) -> Job:
    """Stop a job: at once if no worker holds it, otherwise before its next step."""
    with transaction.atomic():
        job = _locked(job_id, by)
        if job.state in (Job.State.SUCCEEDED, Job.State.FAILED):
            raise JobStateError(
                f"Job {job_id} has {job.state} already; there is nothing to cancel."
            )
        if not job.is_finished:
            abandoned = Q(state=Job.State.QUEUED) | Q(lease_until__lt=Now())
            job_rows = Job.objects.filter(pk=job_id)
            job_rows.update(cancel_requested=True)
            job_rows.filter(abandoned).update(
                state=Job.State.CANCELLED, lease_until=None, finished_at=Now()
            )
            job.refresh_from_db()
    return job


def retry(job_id: UUID, *, by: AnyUser) -> Job:
    """Resume a failed or cancelled job after its last finished step."""
    with transaction.atomic():
        job = _locked(job_id, by)
        if job.state not in (Job.State.FAILED, Job.State.CANCELLED):
            raise JobStateError(
                f"Job {job_id} is {job.state}; only a failed or cancelled job can be retried."
            )
        job.state = Job.State.QUEUED
        job.attempts_without_progress = 0
        job.cancel_requested = False
        job.error = ""
        job.not_before = job.finished_at = job.notified_at = job.lease_until = None
        try:
            with transaction.atomic():
                job.save()
        except IntegrityError as error:
            raise ConflictError(
                f"Another unfinished job has the key {job.idempotency_key!r}; wait for it or cancel it."
            ) from error
        transaction.on_commit(lambda: notify_worker(job.pk, job.kind), robust=True)
    return job


def prune_finished(older_than: timedelta) -> int:
    deleted, _ = Job.objects.filter(finished_at__lt=Now() - older_than).delete()
    return deleted


def _locked(job_id: UUID, by: AnyUser) -> Job:
    job = (
        Job.objects.visible_to(by)
        .select_for_update(no_key=True)
        .filter(pk=job_id)
        .first()
    )
    if job is None:
        raise JobNotFoundError(f"There is no job {job_id} that you may see.")
    return job


def _get_or_create(key: str, values: dict[str, object]) -> tuple[Job, bool]:
    for _ in range(10):
        job = Job.objects.unfinished().filter(idempotency_key=key).first()
        if job is not None:
            return job, False
        try:
            with transaction.atomic():
                return Job.objects.create(idempotency_key=key, **values), True
        except IntegrityError as error:
            # Another process created it first; read it, unless it has finished in
            # between.
            if "job_idempotency_key_unfinished" not in str(error):
                raise
    raise ConflictError(
        f"Jobs with the key {key!r} begin and finish too fast; try again."
    )
