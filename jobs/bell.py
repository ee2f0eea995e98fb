"""The doorbell: tells some worker, through the broker, that a job is due.

A bell may be lost, doubled or late. Nothing depends on it but the moment at which a job
begins, for the sweeper rings again; so a broker that is down fails nobody's request.
"""

import logging
from uuid import UUID

from celery import current_app
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
