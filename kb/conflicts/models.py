from typing import Self

from django.db import models
from django.db.models import Exists, F, OuterRef, Q

from accounts.models import optional_row, optional_user
from accounts.people import AnyUser
from accounts.roles import where_not_elsewhere
from kb.audiences.models import Audience
from kb.entries.models import Entry


class ConflictQuerySet(models.QuerySet["Conflict"]):
    def visible_to(self, user: AnyUser) -> Self:
        audiences = Audience.objects.visible_to(user)
        return self.filter(
            where_not_elsewhere(
                user, "first__knowledge_base", "second__knowledge_base"
            ),
            first__audience__in=audiences,
            second__audience__in=audiences,
        )

    def open(self) -> Self:
        return self.filter(state=Conflict.State.OPEN)

    def contradictions(self) -> Self:
        return self.filter(kind=Conflict.Kind.CONTRADICTION)

    def of_entry(self, *entry_ids: int) -> Self:
        return self.filter(Q(first_id__in=entry_ids) | Q(second_id__in=entry_ids))

    def entries_among(self, entries: models.QuerySet[Entry]) -> models.QuerySet[Entry]:
        return entries.filter(
            Exists(self.filter(first=OuterRef("pk")))
            | Exists(self.filter(second=OuterRef("pk")))
        )


class Conflict(models.Model):
    """Two entries judged to duplicate or contradict each other.

    One row per pair, the entry with the lower id first. A resolved conflict is kept, so
    that a person's decision is not asked for again until one of the texts changes.
    """

    class Kind(models.TextChoices):
        DUPLICATE = "duplicate", "duplicate"
        CONTRADICTION = "contradiction", "contradiction"

    class State(models.TextChoices):
        OPEN = "open", "open"
        MERGED = "merged", "merged"
        KEPT = "kept", "both kept"
        OVERRIDDEN = "overridden", "overridden"
        OUTDATED = "outdated", "outdated"

    first = models.ForeignKey(
        Entry, on_delete=models.CASCADE, related_name="conflicts_as_first"
    )
    second = models.ForeignKey(
        Entry, on_delete=models.CASCADE, related_name="conflicts_as_second"
    )
    first_revision = models.PositiveIntegerField(
        help_text="The revision that was judged."
    )
    second_revision = models.PositiveIntegerField(
        help_text="The revision that was judged."
    )
    texts_sha256 = models.CharField(
        max_length=64, help_text="Digest of both texts, to detect a change."
    )
    kind = models.CharField(max_length=13, choices=Kind.choices)
    score = models.FloatField(help_text="Probability of the kind, 0 to 1.")
    distance = models.FloatField(help_text="Euclidean, of unit vectors, 0 to 2.")
    reasons = models.JSONField(
        default=list,
        help_text="Contradicting parts: signal, reason, and places in the texts.",
    )
    model = models.CharField(
        max_length=100, help_text="Version of the judging model or weights."
    )
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)
    kept = optional_row(
        Entry,
        "+",
        "The entry that a merge kept or an override declared right.",
        blank=True,
    )
    resolved_by = optional_user("resolved_conflicts", blank=True)
    resolved_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=300, blank=True)
    found_at = models.DateTimeField(auto_now_add=True)

    objects = ConflictQuerySet.as_manager()

    class Meta:
        ordering = ["-found_at", "-pk"]
        indexes = [
            models.Index(fields=["-found_at", "-id"], name="conflict_newest"),
            models.Index(
                fields=["first"], condition=Q(state="open"), name="conflict_open_first"
            ),
            models.Index(
                fields=["second"],
                condition=Q(state="open"),
                name="conflict_open_second",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["first", "second"], name="conflict_pair_unique"
            ),
            models.CheckConstraint(
                condition=Q(first__lt=F("second")), name="conflict_lower_id_first"
            ),
            models.CheckConstraint(
                condition=Q(score__gte=0) & Q(score__lte=1),
                name="conflict_score_in_range",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of entries {self.first_id} and {self.second_id}"


class JudgedEntry(models.Model):
    """A record that an entry was compared with its neighbours at a revision."""

    entry = models.OneToOneField(
        Entry, primary_key=True, on_delete=models.CASCADE, related_name="judged"
    )
    revision = models.PositiveIntegerField()
    model = models.CharField(
        max_length=100, help_text="Version of the judging model or weights."
    )

    def __str__(self) -> str:
        return f"entry {self.entry_id} judged at revision {self.revision}"
