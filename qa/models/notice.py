from typing import Self

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import models
from django.db.models import Q

from .answer import Answer
from .escalation import Escalation
from .repeat import Repeat


class NoticeQuerySet(models.QuerySet["Notice"]):
    """Reads over notices."""

    def of(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        """This user's own; nobody sees another's."""
        return self.filter(user_id=user.pk)

    def unread(self) -> Self:
        """Those that were not opened yet."""
        return self.filter(read_at__isnull=True)


class Notice(models.Model):
    """That something became of a question, for whoever asked it.

    Shown in the page; `mailed_at` and `posted_at` say when it left by the other roads.
    It holds no text of its own: what it tells of is read as its reader may read it.
    """

    class Kind(models.TextChoices):
        """What happened."""

        REPLY = "reply", "An expert replied"
        ANSWERED = "answered", "Your question is answered now"

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notices"
    )
    kind = models.CharField(max_length=8, choices=Kind.choices)
    answer = models.ForeignKey(
        Answer,
        on_delete=models.CASCADE,
        related_name="notices",
        help_text="What they asked.",
    )
    escalation = models.OneToOneField(
        Escalation, on_delete=models.CASCADE, null=True, related_name="notice"
    )
    repeat = models.OneToOneField(
        Repeat, on_delete=models.CASCADE, null=True, related_name="notice"
    )
    read_at = models.DateTimeField(null=True)
    mailed_at = models.DateTimeField(null=True)
    posted_at = models.DateTimeField(null=True, help_text="When the webhook took it.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = NoticeQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]
        indexes = [
            models.Index(fields=["user", "-created_at", "-id"], name="notice_newest"),
            models.Index(
                fields=["user"],
                name="notice_unread",
                condition=Q(read_at__isnull=True),
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(kind="reply", escalation__isnull=False, repeat__isnull=True)
                | Q(kind="answered", repeat__isnull=False, escalation__isnull=True),
                name="notice_tells_of_one_thing",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} to {self.user_id}"
