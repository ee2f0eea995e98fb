from datetime import datetime
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q

from accounts.models import optional_user
from accounts.people import AnyUser


class Kind(models.TextChoices):
    """The kinds of items, in the order in which the inbox lists them."""

    ESCALATION = "escalation", "Escalation"
    IMPORT = "import", "Import"
    REVIEW = "review", "Review"
    CONFLICT = "conflict", "Conflict"
    ENTRY = "entry", "Due entry"
    PROPOSAL = "proposal", "Proposed entry"
    GAP = "gap", "Gap"


class InboxMarkQuerySet(models.QuerySet["InboxMark"]):
    def snoozed_by(self, user: AnyUser, at: datetime) -> Self:
        return self.filter(user=user.pk, snoozed_until__gt=at)

    def of_subject(self, kind: str, subject: int) -> Self:
        return self.filter(kind=kind, subject=subject)


class InboxMark(models.Model):
    """An item assigned to a person, or snoozed by them.

    It refers to its subject by kind and id, so the mark of a deleted subject matches
    nothing. Escalations, reviews and gaps have an assignee of their own, which is used
    instead. A trigger writes each change into the audit.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="inbox_marks"
    )
    kind = models.CharField(max_length=10, choices=Kind.choices)
    subject = models.BigIntegerField(help_text="Id of the waiting row.")
    is_assigned = models.BooleanField(default=False)
    snoozed_until = models.DateTimeField(
        null=True, help_text="Until then it is left out of this person's inbox only."
    )
    changed_by = optional_user("+")
    changed_at = models.DateTimeField(auto_now=True)

    objects = InboxMarkQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "kind", "subject"], name="inbox_mark_one_each"
            ),
            models.UniqueConstraint(
                fields=["kind", "subject"],
                condition=Q(is_assigned=True),
                name="inbox_mark_one_assignee",
            ),
            models.CheckConstraint(
                condition=Q(is_assigned=True) | Q(snoozed_until__isnull=False),
                name="inbox_mark_says_something",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject} of user {self.user_id}"
