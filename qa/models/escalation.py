from typing import Self

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import models
from django.db.models import Q

from accounts.roles import Role, has_role
from kb.models import Entry

from .answer import Answer


class EscalationQuerySet(models.QuerySet["Escalation"]):
    """Reads over escalations."""

    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        """One's own; experts see everybody's.

        They do not see one whose reply became an entry that they may not see.
        """
        if not has_role(user, Role.SME):
            return self.filter(raised_by=user.pk)
        own = Q(raised_by=user.pk) | Q(replied_by=user.pk)
        kept = Q(entry_id__isnull=True) | Q(entry__in=Entry.objects.visible_to(user))
        return self.filter(own | kept)

    def waiting(self) -> Self:
        """Those that nobody replied to yet."""
        return self.filter(state=Escalation.State.OPEN)

    def unread_by(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        """Replies that the asker has not opened yet."""
        return self.filter(
            raised_by=user.pk, replied_at__isnull=False, read_at__isnull=True
        )


class Escalation(models.Model):
    """A refused question that an agent sent to an expert, and what came back."""

    class State(models.TextChoices):
        """Whether an expert replied; a closed one got a reason instead of an answer."""

        OPEN = "open", "waiting"
        ANSWERED = "answered", "answered"
        CLOSED = "closed", "closed"

    answer = models.OneToOneField(
        Answer, on_delete=models.CASCADE, related_name="escalation"
    )
    raised_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="escalations",
    )
    note = models.TextField(blank=True, max_length=2000)
    state = models.CharField(max_length=8, choices=State.choices, default=State.OPEN)
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="taken_escalations",
        help_text="The expert who works on it.",
    )
    reply = models.TextField(
        blank=True, max_length=8000, help_text="The answer, or why there is none."
    )
    replied_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="replied_escalations",
    )
    replied_at = models.DateTimeField(null=True)
    read_at = models.DateTimeField(
        null=True, help_text="When the asker opened the reply."
    )
    entry = models.ForeignKey(
        Entry,
        on_delete=models.SET_NULL,
        null=True,
        related_name="escalations",
        help_text="What the reply became.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = EscalationQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]
        indexes = [
            models.Index(fields=["-created_at", "-id"], name="escalation_newest"),
            # The admin's list: what waits first, the longest before the others.
            models.Index(
                fields=["-state", "created_at", "-id"], name="escalation_queue"
            ),
            models.Index(
                fields=["created_at"],
                name="escalation_waiting",
                condition=Q(state="open"),
            ),
            models.Index(
                fields=["raised_by"],
                name="escalation_unread",
                condition=Q(replied_at__isnull=False, read_at__isnull=True),
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(state="open", replied_at__isnull=True, reply="")
                | (~Q(state="open") & Q(replied_at__isnull=False) & ~Q(reply="")),
                name="escalation_reply_ends_it",
            )
        ]

    def __str__(self) -> str:
        return str(self.answer)
