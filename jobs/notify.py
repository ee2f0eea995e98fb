"""The doorbell: tells some worker, through the broker, that a job is due.

A bell may be lost, doubled or late. Nothing depends on it but the moment at which a job
begins, for the sweeper rings again; so a broker that is down fails nobody's request.
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


def ring(job_id: UUID) -> bool:
    """Tell the broker that the job is due; False where the broker cannot be told."""
    try:
        current_app.send_task(RUN_TASK, args=[str(job_id)], retry_policy=_RETRY)
    except (KombuError, OSError):
        logger.warning(
            "Job %s: the broker cannot be told; the sweeper will ring again.",
            job_id,
            exc_info=True,
        )
        return False
    Job.objects.filter(pk=job_id).update(rung_at=Now())
    return True


# Rings again for what nobody works on: lost bells, waits that are over, vanished
# workers.


RINGS_AT_ONCE = 500


def sweep() -> int:
    """Ring for each due job whose last bell is old; returns how many were rung.

    Harmless when it runs twice at the same time or more often than planned: a job that is
    rung for twice is claimed once, and one that another sweep has in hand is left to it.
    """
    # A bell that is this old, for a job that is still due, is taken for lost.
    lost_after = settings.JOB_LEASE * 2 / 3
    lost = Q(rung_at__isnull=True) | Q(rung_at__lt=Now() - lost_after)
    with transaction.atomic():
        due = Job.objects.due().filter(lost).order_by("created_at")
        locked = due.select_for_update(skip_locked=True, no_key=True)
        ids = list(locked.values_list("pk", flat=True)[:RINGS_AT_ONCE])
        Job.objects.filter(pk__in=ids).update(rung_at=Now())
    for count, job_id in enumerate(ids):
        if not ring(job_id):
            # The broker is away: the rest would wait for it one by one.
            Job.objects.filter(pk__in=ids[count:]).update(rung_at=None)
            return count
    return len(ids)
