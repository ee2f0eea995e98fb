import uuid
from typing import Any, Self

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from accounts.models import optional_user
from accounts.people import AnyUser
from accounts.roles import Role, has_role


class JobQuerySet(models.QuerySet["Job"]):
    def unfinished(self) -> Self:
        return self.filter(state__in=[Job.State.QUEUED, Job.State.RUNNING])

    def due(self) -> Self:
        """Return jobs that wait or whose lease has expired, by the database's clock."""
        waiting = Q(state=Job.State.QUEUED) & (
            Q(not_before__isnull=True) | Q(not_before__lte=Now())
        )
        return self.filter(waiting | Q(state=Job.State.RUNNING, lease_until__lt=Now()))

    def last_of_each_kind(self) -> models.QuerySet[Any, Any]:
        """Return (kind, state, end, duration) of each kind's last job in each state."""
        ended = self.filter(started_at__isnull=False, finished_at__isnull=False)
        last = ended.order_by("kind", "state", "-finished_at").distinct("kind", "state")
        took = F("finished_at") - F("started_at")
        return last.values_list("kind", "state", "finished_at", took)

    def visible_to(self, user: AnyUser) -> Self:
        return self if has_role(user, Role.ADMIN) else self.filter(owner_id=user.pk)


class Job(models.Model):
    """A piece of long-running work, and the authoritative record of its state.

    A run holds a lease that a heartbeat renews; a sweep notifies a worker again of jobs
    that nobody holds.
    """

    class State(models.TextChoices):
        QUEUED = "queued", "queued"
        RUNNING = "running", "running"
        SUCCEEDED = "succeeded", "succeeded"
        FAILED = "failed", "failed"
        CANCELLED = "cancelled", "cancelled"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=50, help_text='"app.verb", such as kb.embed.')
    parameters = models.JSONField(default=dict)
    origin = models.JSONField(
        default=dict,
        db_default=models.Value({}, models.JSONField()),
        help_text="The request that started it: its id, and its trace (W3C Trace Context).",
    )
    state = models.CharField(max_length=9, choices=State.choices, default=State.QUEUED)
    done = models.PositiveBigIntegerField(default=0)
    total = models.PositiveBigIntegerField(null=True, blank=True)
    cursor = models.JSONField(
        default=dict, help_text="Where the handler continues; in its own format."
    )
    result = models.JSONField(default=dict)
    error = models.TextField(blank=True)
    attempts = models.PositiveIntegerField(
        default=0, help_text="Runs started; also used to fence off a stale worker."
    )
    attempts_without_progress = models.PositiveIntegerField(
        db_column="barren_attempts",
        default=0,
        help_text="Consecutive runs without progress, including the current one.",
    )
    max_attempts = models.PositiveIntegerField(
        default=5, help_text="The job fails after this many runs without progress."
    )
    owner = optional_user("jobs", blank=True)
    idempotency_key = models.CharField(
        max_length=200,
        blank=True,
        help_text="Enqueueing again with the key of an unfinished job returns that "
        "job.",
    )
    cancel_requested = models.BooleanField(default=False)
    worker = models.CharField(max_length=200, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    notified_at = models.DateTimeField(
        db_column="rung_at",
        null=True,
        blank=True,
        help_text="When a worker was last notified.",
    )
    not_before = models.DateTimeField(
        null=True, blank=True, help_text="A retry does not start before this time."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = JobQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]
        indexes = [
            models.Index(
                fields=["state", "lease_until"],
                condition=Q(state__in=["queued", "running"]),
                name="job_unfinished",
            ),
            models.Index(fields=["owner", "-created_at"], name="job_by_owner"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["idempotency_key"],
                condition=Q(state__in=["queued", "running"]) & ~Q(idempotency_key=""),
                name="job_idempotency_key_unfinished",
            ),
            models.CheckConstraint(
                condition=~Q(state="running") | Q(lease_until__isnull=False),
                name="job_running_has_lease",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.state}"

    @property
    def is_finished(self) -> bool:
        """Whether no worker will touch it again unless it is retried."""
        return self.state not in (self.State.QUEUED, self.State.RUNNING)
