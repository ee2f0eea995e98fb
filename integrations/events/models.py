"""The outbox: webhook endpoints, events, deliveries and mail alerts.

Triggers write the events (`integrations/migrations/events.sql`) in the transaction that
caused them, whichever code ran it, and only those that some endpoint wants or that
somebody may be mailed about.
"""

import base64
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Self

from django.contrib.auth.models import User
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils.crypto import salted_hmac

from accounts.models import Preferences, optional_row, optional_user
from accounts.people import AnyUser
from accounts.roles import Role, has_role
from kb.documents.models import KnowledgeBase

TEST = "endpoint.test"
KEEPS_FORMER_SECRET = timedelta(hours=24)
"""How long after a rotation posts are signed with both secrets."""


class EventType(StrEnum):
    """Types of events to subscribe to; part of the interface, so never renamed."""

    ANSWER_REFUSED = "answer.refused"
    ANSWER_VOTED = "answer.voted"
    ESCALATION_RAISED = "escalation.raised"
    ESCALATION_REPLIED = "escalation.replied"
    GAP_OPENED = "gap.opened"
    GAP_FILLED = "gap.filled"
    ENTRY_CHANGED = "entry.changed"
    ENTRY_VERIFIED = "entry.verified"
    ENTRY_EXPIRED = "entry.expired"
    CONFLICT_FOUND = "conflict.found"
    DRIFT_FOUND = "drift.found"
    POLICY_ACTIVATED = "policy.activated"
    JOB_SUCCEEDED = "job.succeeded"
    JOB_FAILED = "job.failed"
    SOURCE_FAILED = "source.failed"
    DELIVERY_FAILED = "delivery.failed"
    NOTICE_SENT = "notice.sent"


MEANINGS = {
    EventType.ANSWER_REFUSED: "a question was refused",
    EventType.ANSWER_VOTED: "somebody voted on an answer or a refusal",
    EventType.ESCALATION_RAISED: "a refused question, or a wrong answer, was sent to an expert",
    EventType.ESCALATION_REPLIED: "an expert answered or closed an escalation",
    EventType.GAP_OPENED: "a gap was found or reopened",
    EventType.GAP_FILLED: "a gap was filled",
    EventType.ENTRY_CHANGED: "an entry has a new revision, such as one that retires it",
    EventType.ENTRY_VERIFIED: "an entry was verified",
    EventType.ENTRY_EXPIRED: "an entry's validity ended",
    EventType.CONFLICT_FOUND: "two entries say the same or contradict each other",
    EventType.DRIFT_FOUND: "live questions have drifted from those of a calibration",
    EventType.POLICY_ACTIVATED: "a version of a policy was activated",
    EventType.JOB_SUCCEEDED: "background work that a user started is done",
    EventType.JOB_FAILED: "background work failed",
    EventType.SOURCE_FAILED: "a followed source can't be read any more",
    EventType.DELIVERY_FAILED: "a delivery to a webhook endpoint failed for good",
    EventType.NOTICE_SENT: "a user received a notice",
}


def new_seed() -> str:
    return secrets.token_hex(16)


def _key(seed: str) -> bytes:
    """Derive a signing key from its stored seed and NESCIO_SECRET_KEY."""
    return salted_hmac("nescio.webhook", seed, algorithm="sha256").digest()


class EndpointQuerySet(models.QuerySet["Endpoint"]):
    def wanting(self, event: "Event") -> Self:
        """Return the endpoints that existed and wanted the event when it happened."""
        return self.filter(
            Q(knowledge_base__isnull=True) | Q(knowledge_base=event.knowledge_base_id),
            is_active=True,
            types__contains=[event.type],
            created_at__lte=event.created_at,
        ).select_related("owner")

    def with_due(self, at: datetime) -> Self:
        """Return active endpoints with a delivery due that no process is sending to."""
        due = Delivery.objects.due(at).filter(endpoint=OuterRef("pk"))
        free = Q(not_before__isnull=True) | Q(not_before__lte=at)
        return self.filter(free, Exists(due), is_active=True)

    def working(self) -> Self:
        return self.filter(is_active=True, failing_since__isnull=True)

    def failing(self) -> Self:
        return self.filter(is_active=True, failing_since__isnull=False)

    def switched_off(self) -> Self:
        """Return endpoints that were switched off automatically after failures."""
        return self.filter(is_active=False, switched_off_at__isnull=False)

    def editable_by(self, user: AnyUser) -> Self:
        """Return the user's own endpoints.

        Whoever changes the address of an endpoint reads with its owner's rights.
        """
        if isinstance(user, User) and user.is_superuser:
            return self
        return self.filter(owner_id=user.pk)


class Endpoint(models.Model):
    """An address that receives the events that its owner may see."""

    name = models.CharField(max_length=100, unique=True)
    url = models.CharField(
        "address",
        max_length=500,
        help_text="Receives a POST request with JSON for each event.",
    )
    owner = optional_user(
        "endpoints", "Only events about things that this account may see are sent."
    )
    knowledge_base = optional_row(
        KnowledgeBase,
        "endpoints",
        "Only events of this knowledge base; empty: all events, including those of no "
        "knowledge base.",
        blank=True,
        on_delete=models.CASCADE,
    )
    types = ArrayField(
        models.CharField(max_length=30),
        verbose_name="events",
        help_text="`EventType`s.",
    )
    is_active = models.BooleanField(
        "active",
        default=True,
        help_text="Events that occur while it is off are not sent later.",
    )
    secret_seed = models.CharField(max_length=64, default=new_seed, editable=False)
    former_seed = models.CharField(max_length=64, blank=True, editable=False)
    rotated_at = models.DateTimeField(null=True, editable=False)
    failures = models.PositiveIntegerField(
        default=0, editable=False, help_text="Failed attempts since the last success."
    )
    failing_since = models.DateTimeField(null=True, editable=False)
    switched_off_at = models.DateTimeField(
        null=True, editable=False, help_text="When it was switched off automatically."
    )
    switched_off_reason = models.CharField(max_length=300, blank=True, editable=False)
    not_before = models.DateTimeField(
        null=True,
        editable=False,
        help_text="No attempt before this time: a process is sending to it, or the "
        "last attempt failed.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = EndpointQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        verbose_name = "webhook endpoint"

    def __str__(self) -> str:
        return self.name

    @property
    def secret(self) -> str:
        """The receiver's secret, in the format of Standard Webhooks."""
        return f"whsec_{base64.b64encode(_key(self.secret_seed)).decode()}"

    @property
    def condition(self) -> str:
        """Whether it works, or why not, in a word or two."""
        if self.owner is None or not self.owner.is_active:
            return "owner gone"
        if not self.is_active:
            return "switched off" if self.switched_off_at else "off"
        return "failing" if self.failing_since else "works"

    def signing_keys(self, at: datetime) -> tuple[bytes, ...]:
        """Return its secret's key and, for a day after a rotation, the former one."""
        seeds = [self.secret_seed]
        if self.rotated_at and at < self.rotated_at + KEEPS_FORMER_SECRET:
            seeds.append(self.former_seed)
        return tuple(_key(seed) for seed in seeds)


class Event(models.Model):
    """Something that happened: ids but no text. Its number orders all events."""

    type = models.CharField(max_length=30)
    knowledge_base = optional_row(
        KnowledgeBase, "+", on_delete=models.CASCADE, db_index=False
    )
    data = models.JSONField(help_text="Ids and states at the time of the event.")
    key = models.CharField(
        max_length=100,
        blank=True,
        help_text="Identifies an event that is reported only once.",
    )
    created_at = models.DateTimeField()
    routed_at = models.DateTimeField(
        null=True, help_text="When its deliveries were created."
    )

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(
                fields=["id"],
                name="event_unrouted",
                condition=Q(routed_at__isnull=True),
            ),
            models.Index(fields=["created_at"], name="event_by_time"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["key"], name="event_key_once", condition=~Q(key="")
            )
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.message_id}"

    @property
    def message_id(self) -> str:
        """The id by which a receiver recognizes duplicates; sorts in event order."""
        return f"evt_{self.pk:016d}"


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    def visible_to(self, user: AnyUser) -> Self:
        """Return deliveries to the user's own endpoints, sent within their rights."""
        if not has_role(user, Role.ADMIN):
            return self.none()
        own = Endpoint.objects.editable_by(user)
        return self.filter(endpoint__in=own)

    def due(self, at: datetime) -> Self:
        return self.filter(state=Delivery.State.PENDING, next_attempt_at__lte=at)


class Delivery(models.Model):
    """One event for one endpoint, with the outcome of the last attempt."""

    class State(models.TextChoices):
        PENDING = "pending", "pending"
        DELIVERED = "delivered", "delivered"
        FAILED = "failed", "failed"

    endpoint = models.ForeignKey(
        Endpoint, on_delete=models.CASCADE, related_name="deliveries", db_index=False
    )
    event = models.ForeignKey(
        Event, on_delete=models.CASCADE, related_name="deliveries"
    )
    state = models.CharField(max_length=9, choices=State.choices, default=State.PENDING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True)
    last_attempt_at = models.DateTimeField(null=True)
    status = models.PositiveSmallIntegerField(null=True, help_text="HTTP status.")
    milliseconds = models.PositiveIntegerField(null=True)
    response = models.TextField(blank=True, help_text="Beginning of the response.")
    error = models.TextField(blank=True)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        verbose_name = "webhook delivery"
        verbose_name_plural = "webhook deliveries"
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint", "event"], name="delivery_once_an_endpoint"
            ),
            models.CheckConstraint(
                condition=~Q(state="pending") | Q(next_attempt_at__isnull=False),
                name="delivery_pending_has_time",
            ),
        ]
        indexes = [
            models.Index(
                fields=["endpoint", "next_attempt_at"],
                name="delivery_due",
                condition=Q(state="pending"),
            ),
            models.Index(fields=["state", "-id"], name="delivery_by_state"),
        ]

    def __str__(self) -> str:
        return f"{self.event} to {self.endpoint}"


class AlertQuerySet(models.QuerySet["Alert"]):
    def pending(self, kinds: Collection[str]) -> Self:
        return self.filter(mailed_at__isnull=True, kind__in=kinds)


class Alert(models.Model):
    """An event that a user is to be mailed about, or was."""

    user = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="alerts", db_index=False
    )
    event = models.ForeignKey(Event, on_delete=models.CASCADE, related_name="alerts")
    kind = models.CharField(max_length=11, choices=Preferences.Alert.choices)
    mailed_at = models.DateTimeField(null=True)

    objects = AlertQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "event"], name="alert_once_a_user")
        ]
        indexes = [
            models.Index(
                fields=["user", "kind"],
                name="alert_pending",
                condition=Q(mailed_at__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} to {self.user_id}"
