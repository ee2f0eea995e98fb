from datetime import datetime
from typing import Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Case, F, GeneratedField, Q, Value, When
from django.db.models.functions import Greatest, Least

from accounts.models import optional_user
from kb.entries.due import EXPIRY_NOTICE, Due, Reason
from kb.entries.models import Entry


class Upkeep(models.Model):
    """An entry's usage counts, and when it needs a review.

    One row per entry. Triggers in `kb/migrations/rules.sql` derive the dates from the
    entry; `kb.upkeep.services` adds to the counts. In a table of its own, so that
    neither rewrites the entry nor changes `updated_at`.
    """

    entry = models.OneToOneField(
        Entry, primary_key=True, on_delete=models.CASCADE, related_name="upkeep"
    )
    uses = models.PositiveIntegerField(db_default=0, help_text="Answers that cited it.")
    last_used_at = models.DateTimeField(null=True)
    up = models.IntegerField(
        db_default=0, help_text="Thumbs up on answers that cited it."
    )
    down = models.IntegerField(
        db_default=0, help_text="Thumbs down on answers that cited it."
    )
    waiting_since = models.DateTimeField(
        null=True, help_text='When it entered "in review" or "needs review".'
    )
    review_due = models.DateTimeField(
        null=True, help_text="If verified: when it must be verified again."
    )
    expiry_notice_at = models.DateTimeField(
        null=True, help_text="When the owner is notified of its expiry."
    )
    doubted_since = models.DateTimeField(
        null=True,
        help_text="If verified: since when votes have called it wrong or out of date.",
    )
    flagged_since = models.DateTimeField(
        null=True, help_text="Since when people have flagged it as outdated."
    )
    postponed_until = models.DateTimeField(null=True)
    postponed_by = optional_user("+")
    due_at = GeneratedField(
        # The database's least and greatest ignore nulls.
        expression=Case(
            When(
                Q(waiting_since__isnull=True)
                & Q(review_due__isnull=True)
                & Q(expiry_notice_at__isnull=True)
                & Q(doubted_since__isnull=True)
                & Q(flagged_since__isnull=True),
                then=Value(None),
            ),
            default=Greatest(
                Least(
                    F("waiting_since"),
                    F("review_due"),
                    F("expiry_notice_at"),
                    F("doubted_since"),
                    F("flagged_since"),
                ),
                F("postponed_until"),
            ),
        ),
        output_field=models.DateTimeField(null=True),
        db_persist=True,
    )

    class Meta:
        indexes = [
            # The order of the queue: most used, then longest due.
            models.Index(
                fields=["-uses", "due_at", "entry"],
                condition=Q(due_at__isnull=False),
                name="upkeep_queue",
            ),
            models.Index(fields=["due_at"], name="upkeep_due"),
            models.Index(
                fields=["doubted_since"],
                condition=Q(doubted_since__isnull=False),
                name="upkeep_doubted",
            ),
            models.Index(fields=["review_due"], name="upkeep_review"),
            models.Index(fields=["expiry_notice_at"], name="upkeep_expiry"),
        ]

    def __str__(self) -> str:
        return f"upkeep of entry {self.entry_id}"

    @property
    def valid_until(self) -> datetime | None:
        """When the entry expires; None if it is not in use anyway."""
        notice = self.expiry_notice_at
        return None if notice is None else notice + EXPIRY_NOTICE

    def is_overdue(self, at: datetime) -> bool:
        return self.review_due is not None and self.review_due <= at

    def reasons(self, at: datetime) -> tuple[Due, ...]:
        """Return the reasons why the entry is due at `at`, the most severe first."""
        found = []
        if self.valid_until and self.valid_until <= at:
            found.append(Due(Reason.EXPIRED, self.valid_until))
        if self.flagged_since and self.flagged_since <= at:
            found.append(Due(Reason.FLAGGED, self.flagged_since))
        if self.doubted_since and self.doubted_since <= at:
            found.append(Due(Reason.VOTED_DOWN, self.doubted_since))
        if self.review_due and self.review_due <= at:
            found.append(Due(Reason.OVERDUE, self.review_due))
        if self.valid_until and at < self.valid_until <= at + EXPIRY_NOTICE:
            found.append(Due(Reason.EXPIRING, self.valid_until))
        if self.waiting_since:
            found.append(Due(Reason(self.entry.state), self.waiting_since))
        return tuple(found)


class FlagQuerySet(models.QuerySet["Flag"]):
    def open(self) -> Self:
        """Flags raised since the entry was last verified or retired."""
        return self.filter(created_at__gte=F("entry__upkeep__flagged_since"))


class Flag(models.Model):
    """A report of what is wrong with an entry, which stays in use meanwhile.

    It is kept after someone has handled it by verifying or retiring the entry. If
    `source` is set, that followed source proposes to retire an entry it no longer has.
    """

    class Reason(models.TextChoices):
        """What is wrong, in the same words as in votes on answers."""

        WRONG = "wrong", "It is wrong"
        INCOMPLETE = "incomplete", "It is incomplete"
        OUTDATED = "outdated", "It is out of date"
        UNCLEAR = "unclear", "It is hard to understand"
        OTHER = "other", "Something else"

    entry = models.ForeignKey(Entry, on_delete=models.CASCADE, related_name="flags")
    user = optional_user("flags")
    source = models.ForeignKey(
        "kb.FollowedSource", on_delete=models.SET_NULL, null=True, related_name="flags"
    )
    reasons = ArrayField(
        models.CharField(max_length=20, choices=Reason.choices),
        default=list,
        db_default=[],
        blank=True,
    )
    note = models.TextField(blank=True, max_length=1000)
    created_at = models.DateTimeField()

    objects = FlagQuerySet.as_manager()

    class Meta:
        ordering = ["created_at", "pk"]

    def __str__(self) -> str:
        return f"flag of entry {self.entry_id}"

    @property
    def reason_words(self) -> list[str]:
        return [self.Reason(reason).label for reason in self.reasons]


class Reminder(models.Model):
    """A record that an owner was reminded of an entry; once each time it comes due."""

    entry = models.ForeignKey(Entry, on_delete=models.CASCADE, related_name="reminders")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+"
    )
    due_at = models.DateTimeField(
        help_text="The entry's due date at that time; identifies the occasion."
    )
    sent_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "entry", "due_at"], name="reminder_once"
            )
        ]

    def __str__(self) -> str:
        return f"reminder of entry {self.entry_id} to user {self.owner_id}"
