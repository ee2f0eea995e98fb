"""Rings again for what nobody works on: lost bells, waits that are over, vanished workers."""

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from jobs.bell import ring
from jobs.models import Job

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
