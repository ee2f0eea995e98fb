from datetime import date, timedelta
from typing import Self, TypeVar

from django.db import models
from django.db.models import F
from django.db.models.functions import Cast

from kb.documents.models import KnowledgeBase
from kb.tags.models import Tag
from qa.answers.models import Answer

_Row = TypeVar("_Row", bound="Daily", covariant=True)


class DailyQuerySet(models.QuerySet[_Row]):
    def between(self, first: date, last: date) -> Self:
        return self.filter(day__gte=first, day__lte=last)

    def about(self, *, knowledge_base: int | None, tag: int | None) -> Self:
        """Filter by one knowledge base or all, and by one tag or all answers."""
        rows = self.filter(tag=tag)
        return rows.filter(knowledge_base=knowledge_base) if knowledge_base else rows


class Daily(models.Model):
    """A count of one day's similar answers; evaluations are not counted.

    An answer is counted once without a tag and once under each of its tags, so counts
    of different tags must not be added up.
    """

    day = models.DateField(help_text="Day of the questions, in UTC.")
    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.CASCADE, related_name="+"
    )
    tag = models.ForeignKey(Tag, on_delete=models.CASCADE, null=True, related_name="+")
    answers = models.PositiveIntegerField()

    objects = DailyQuerySet.as_manager()

    class Meta:
        abstract = True


class DailyCount(Daily):
    """How many answers of a day had the same outcome, gate and reason; their votes."""

    outcome = models.CharField(max_length=8, choices=Answer.Outcome.choices)
    gate = models.CharField(max_length=12, blank=True)
    reason = models.CharField(max_length=20, blank=True)
    up = models.PositiveIntegerField(
        help_text="Thumbs up on these answers, on whatever day they were given."
    )
    down = models.PositiveIntegerField(help_text="Thumbs down on these answers.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tag", "day", "knowledge_base", "outcome", "gate", "reason"],
                name="daily_count_unique",
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        return f"{self.day}: {self.answers} {self.outcome}"


class DailyLatency(Daily):
    """How many answers of a day are in a latency bucket; see `qa.dashboard.traffic`."""

    outcome = models.CharField(max_length=8, choices=Answer.Outcome.choices)
    bucket = models.SmallIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tag", "day", "knowledge_base", "outcome", "bucket"],
                name="daily_latency_unique",
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        return f"{self.day}: {self.answers} {self.outcome} in bucket {self.bucket}"


class DailyShadow(Daily):
    """How many shown answers of a day a shadow gate judged, and would have refused.

    Reviews and votes are those of answers that it would have refused.
    """

    gate = models.CharField(max_length=12)
    refused = models.PositiveIntegerField(
        help_text="Answers that the gate would have refused."
    )
    right = models.PositiveIntegerField(
        help_text="Those of them that were judged right in reviews."
    )
    wrong = models.PositiveIntegerField(
        help_text="Those of them that were judged wrong in reviews."
    )
    up = models.PositiveIntegerField(help_text="Thumbs up on them.")
    down = models.PositiveIntegerField(help_text="Thumbs down on them.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tag", "day", "knowledge_base", "gate"],
                name="daily_shadow_unique",
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        return f"{self.day}: {self.gate} would have refused {self.refused} of {self.answers}"


class DailyModel(Daily):
    """How many answers of a day are in a model's latency bucket, and its tokens."""

    class Kind(models.TextChoices):
        EMBEDDER = "embedder", "Embedding model"
        VERIFIER = "verifier", "Verifier"
        LANGUAGE_MODEL = "language_model", "Language model"
        OWN_KNOWLEDGE = "own_knowledge", "Language model, own knowledge"

    kind = models.CharField(max_length=14, choices=Kind.choices)
    fingerprint = models.CharField(max_length=200)
    bucket = models.SmallIntegerField()
    tokens_read = models.PositiveBigIntegerField()
    tokens_written = models.PositiveBigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=[
                    "tag", "day", "knowledge_base", "kind", "fingerprint", "bucket",
                ],
                name="daily_model_unique",
                nulls_distinct=False,
            )
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.day}: {self.answers} by {self.kind} {self.fingerprint[:12]}"


class CountedDayQuerySet(models.QuerySet["CountedDay"]):
    def settled(self, after: timedelta) -> Self:
        """Return the days counted at least `after` past their start, so complete."""
        began = Cast(F("day"), models.DateTimeField())
        return self.filter(counted_at__gte=began + after)


class CountedDay(models.Model):
    day = models.DateField(primary_key=True)
    counted_at = models.DateTimeField()

    objects = CountedDayQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.day}"


class ChangedDay(models.Model):
    """A day whose answers, votes or reviews changed after it had ended.

    Written by triggers on these, deleted when the day is counted again.
    """

    day = models.DateField()

    def __str__(self) -> str:
        return f"{self.day}"
