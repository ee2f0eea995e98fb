"""Notifies some worker, through the broker, that a job is due.

A notification may be lost, doubled or late. Nothing depends on it but the moment at which
a job begins, for the sweep sends it again; so a broker that is down fails no request.
"""

import logging
from uuid import UUID

from celery import current_app
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from kombu.exceptions import KombuError

from jobs.models import Job

logger = logging.getLogger(__name__)

RUN_TASK = "workers.run_job"
# One more try heals a connection that a restarted broker has closed.
_RETRY = {"max_retries": 1, "interval_start": 0, "interval_max": 0.2}


def notify_worker(job_id: UUID) -> bool:
    """Return whether the broker took the notification that the job is due."""
    try:
        current_app.send_task(RUN_TASK, args=[str(job_id)], retry_policy=_RETRY)
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
    """Notify again of each due job whose notification is old; return of how many.

    For lost notifications, waits that are over and vanished workers. Harmless when it runs
    twice at the same time: a job is claimed once, and one that another sweep holds is left
    to it.
    """
    # One that is this old, for a job that is still due, is taken for lost.
    lost_after = settings.JOB_LEASE * 2 / 3
    lost = Q(notified_at__isnull=True) | Q(notified_at__lt=Now() - lost_after)
    with transaction.atomic():
        due = Job.objects.due().filter(lost).order_by("created_at")
        locked = due.select_for_update(skip_locked=True, no_key=True)
        ids = list(locked.values_list("pk", flat=True)[:MAX_NOTIFIED_AT_ONCE])
        Job.objects.filter(pk__in=ids).update(notified_at=Now())
    for count, job_id in enumerate(ids):
        if not notify_worker(job_id):
            # The broker is away: the rest would wait for it one by one.
            Job.objects.filter(pk__in=ids[count:]).update(notified_at=None)
            return count
    return len(ids)
