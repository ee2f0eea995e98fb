from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q

from accounts.models import optional_row, optional_user
from accounts.people import AnyUser
from accounts.roles import Role, bases_of_role
from kb.entries.models import Entry
from qa.answers.models import Answer

from .models import Repeat


class EscalationQuerySet(models.QuerySet["Escalation"]):
    def visible_to(self, user: AnyUser) -> Self:
        """Filter to the user's own; experts see all those of their knowledge bases.

        An escalation whose reply became an entry is hidden from experts who may not see
        that entry, either as it is now or as it was then.
        """
        bases = bases_of_role(user, Role.SME)
        raised = Q(raised_by=user.pk)
        if bases == frozenset():
            return self.filter(raised)
        kept = Q(entry_id__isnull=True) | Q(
            entry__in=Entry.objects.always_visible_to(user)
        )
        theirs = Q(replied_by=user.pk) | kept
        if bases is not None:
            # A correlated subquery: with a join, PostgreSQL misestimates the entries
            # above and reads all answers.
            answers = Answer.objects.filter(pk=OuterRef("answer"))
            theirs &= Q(Exists(answers.filter(knowledge_base__in=bases)))
        return self.filter(raised | theirs)

    def waiting(self) -> Self:
        return self.filter(state=Escalation.State.OPEN)

    def unread_by(self, user: AnyUser) -> Self:
        """Filter to replies that the asker has not opened yet."""
        return self.filter(
            raised_by=user.pk, replied_at__isnull=False, read_at__isnull=True
        )


class Escalation(models.Model):
    """A refused or wrongly answered question that an agent sent to an expert.

    Holds the expert's reply too.
    """

    class State(models.TextChoices):
        """Whether an expert replied; a closed one has a reason instead of an answer."""

        OPEN = "open", "waiting"
        ANSWERED = "answered", "answered"
        CLOSED = "closed", "closed"

    answer = models.OneToOneField(
        Answer, on_delete=models.CASCADE, related_name="escalation"
    )
    raised_by = optional_user("escalations")
    note = models.TextField(blank=True, max_length=2000)
    state = models.CharField(max_length=8, choices=State.choices, default=State.OPEN)
    assignee = optional_user(
        "taken_escalations", "The expert who works on it.", blank=True
    )
    reply = models.TextField(
        blank=True, max_length=8000, help_text="The answer, or why there is none."
    )
    replied_by = optional_user("replied_escalations")
    replied_at = models.DateTimeField(null=True)
    read_at = models.DateTimeField(
        null=True, help_text="When the asker opened the reply."
    )
    entry = optional_row(
        Entry, "escalations", "The entry that was made from the reply."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = EscalationQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]
        indexes = [
            models.Index(fields=["-created_at", "-id"], name="escalation_newest"),
            # The admin's list: open ones first, the oldest first.
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

    @property
    def is_open(self) -> bool:
        return self.state == self.State.OPEN


class NoticeQuerySet(models.QuerySet["Notice"]):
    def of(self, user: AnyUser) -> Self:
        """Filter to the user's own notices, without those of entries they can't see."""
        entries = Entry.objects.visible_to(user)
        seen = Q(entry__isnull=True) | Q(entry__in=entries.values("pk"))
        return self.filter(seen, user_id=user.pk)

    def unread(self) -> Self:
        return self.filter(read_at__isnull=True)


class Notice(models.Model):
    """A notice on a question for its asker, or on an entry for its owner or experts.

    Shown on the page; `mailed_at` is when it was sent by mail. It stores no text of its
    own: the answer or reply is read with its reader's own permissions.
    """

    class Kind(models.TextChoices):
        REPLY = "reply", "An expert replied"
        ANSWERED = "answered", "Your question is answered now"
        DOUBTED = "doubted", "An entry of yours was voted down"
        FLAGGED = "flagged", "An entry was flagged as wrong or outdated"

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notices"
    )
    kind = models.CharField(max_length=8, choices=Kind.choices)
    answer = models.ForeignKey(
        Answer,
        on_delete=models.CASCADE,
        null=True,
        related_name="notices",
        help_text="The question; in a notice about an entry, one whose answer was "
        "voted down; empty for a flag.",
    )
    escalation = models.OneToOneField(
        Escalation, on_delete=models.CASCADE, null=True, related_name="notice"
    )
    repeat = models.OneToOneField(
        Repeat, on_delete=models.CASCADE, null=True, related_name="notice"
    )
    entry = models.ForeignKey(
        Entry, on_delete=models.CASCADE, null=True, related_name="notices"
    )
    read_at = models.DateTimeField(null=True)
    mailed_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = NoticeQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]
        indexes = [
            models.Index(fields=["user", "-created_at", "-id"], name="notice_newest"),
            models.Index(
                fields=["user"], name="notice_unread", condition=Q(read_at__isnull=True)
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(
                    kind="reply",
                    answer__isnull=False,
                    escalation__isnull=False,
                    repeat__isnull=True,
                    entry__isnull=True,
                )
                | Q(
                    kind="answered",
                    answer__isnull=False,
                    repeat__isnull=False,
                    escalation__isnull=True,
                    entry__isnull=True,
                )
                | Q(
                    kind="doubted",
                    answer__isnull=False,
                    entry__isnull=False,
                    escalation__isnull=True,
                    repeat__isnull=True,
                )
                | Q(
                    kind="flagged",
                    answer__isnull=True,
                    entry__isnull=False,
                    escalation__isnull=True,
                    repeat__isnull=True,
                ),
                name="notice_tells_of_one_thing",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} to {self.user_id}"
