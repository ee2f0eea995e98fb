from datetime import datetime
from typing import Self

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from accounts.models import optional_user
from accounts.people import AnyUser
from accounts.roles import where_not_elsewhere
from kb.audiences.models import Audience
from kb.documents.models import Document, KnowledgeBase, of_base_in_use

MAX_HOURS = 24 * 90


class FollowedSourceQuerySet(models.QuerySet["FollowedSource"]):
    def visible_to(self, user: AnyUser) -> Self:
        """Sources whose audiences all include the user, where their roles apply."""
        hidden = FollowRule.objects.filter(
            audience__in=Audience.objects.hidden_from(user)
        )
        rows = self.exclude(pk__in=hidden.values("source"))
        if not user.is_authenticated:
            return rows.none()
        return rows.filter(where_not_elsewhere(user))

    def due(self, now: datetime) -> Self:
        """Sources that are due to be read."""
        waiting = Q(next_check_at__isnull=True) | Q(next_check_at__lte=now)
        return self.filter(waiting, of_base_in_use(), is_active=True)


class FollowedSource(models.Model):
    """A place where knowledge is maintained elsewhere, and how it is read again.

    Visible to users who belong to all audiences of its rules. `kb.sources.checking`
    reads it on behalf of its owner: the curator who followed or last changed it.
    """

    name = models.CharField(max_length=100)
    kind = models.CharField(
        max_length=30, help_text="A key of `kb.sources.kinds.KINDS`."
    )
    address = models.CharField(max_length=500)
    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.PROTECT, related_name="followed_sources"
    )
    credential = models.CharField(
        max_length=100,
        blank=True,
        help_text="The environment variable that holds it; never the credential itself.",
    )
    every_hours = models.PositiveIntegerField(
        "read every", validators=[MinValueValidator(1), MaxValueValidator(MAX_HOURS)]
    )
    is_active = models.BooleanField("read on schedule", default=True)
    owner = optional_user("followed_sources", blank=True)
    job_id = models.UUIDField(null=True, blank=True, help_text="The latest check.")
    next_check_at = models.DateTimeField(null=True, blank=True)
    checked_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was last read completely."
    )
    counts = models.JSONField(default=dict, help_text="Results of that check.")
    note = models.TextField(
        blank=True, help_text="What that check left undone, and why."
    )
    error = models.TextField(blank=True, help_text="Why the last check failed.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = FollowedSourceQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]

    def __str__(self) -> str:
        return self.name


class FollowRule(models.Model):
    """Which audience gets the documents of a group; the first match decides.

    A group is a folder, a space, a section or a label; an empty one is everything.
    """

    source = models.ForeignKey(
        FollowedSource, on_delete=models.CASCADE, related_name="rules"
    )
    position = models.PositiveIntegerField()
    group = models.CharField(max_length=300, blank=True)
    audience = models.ForeignKey(
        Audience, on_delete=models.PROTECT, related_name="follow_rules"
    )

    class Meta:
        ordering = ["source", "position"]
        constraints = [
            models.UniqueConstraint(
                fields=["source", "position"], name="follow_rule_position"
            )
        ]

    def __str__(self) -> str:
        return f"{self.group or 'everything'}: {self.audience_id}"


class FollowedDocumentQuerySet(models.QuerySet["FollowedDocument"]):
    def kept(self) -> Self:
        """Those that were imported and are not gone."""
        return self.filter(state=FollowedDocument.State.KEPT)

    def left_out(self) -> Self:
        """Those of which something could not be read or was not imported."""
        return self.exclude(error="", note="")

    def visible_to(self, user: AnyUser) -> Self:
        """Of sources that the user may see, those of no audience hidden from them.

        A rule may have given a document to an audience that the source no longer has.
        """
        hidden = Audience.objects.hidden_from(user).values("pk")
        return self.exclude(audience__in=hidden).exclude(document__audience__in=hidden)


class FollowedDocument(models.Model):
    """A document that a source listed, as of the last time it was read."""

    class State(models.TextChoices):
        KEPT = "kept", "imported"
        FAILED = "failed", "never read"
        GONE = "gone", "gone"

    source = models.ForeignKey(
        FollowedSource, on_delete=models.CASCADE, related_name="documents"
    )
    key = models.CharField(max_length=500)
    title = models.CharField(max_length=300, blank=True)
    state = models.CharField(max_length=6, choices=State.choices, default=State.FAILED)
    marker = models.CharField(
        max_length=200,
        blank=True,
        help_text="A value from the listing, if any, that changes with the content.",
    )
    known = models.JSONField(
        default=dict, help_text="Data for detecting changes, in the format of its kind."
    )
    audience = models.ForeignKey(
        Audience, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    document = models.ForeignKey(
        Document, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    error = models.TextField(blank=True, help_text="Why it could not be read.")
    note = models.TextField(blank=True, help_text="The parts that were not imported.")
    changed_at = models.DateTimeField(null=True)

    objects = FollowedDocumentQuerySet.as_manager()

    class Meta:
        ordering = ["source", "key"]
        constraints = [
            models.UniqueConstraint(
                fields=["source", "key"], name="followed_document_key"
            )
        ]

    def __str__(self) -> str:
        return self.title or self.key
