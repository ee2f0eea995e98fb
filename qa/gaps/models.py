import math
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self

from django.db import models
from django.db.models import Count, Exists, F, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce
from pgvector.django import VectorField

from accounts.models import optional_row, optional_user
from accounts.people import AnyUser
from accounts.roles import Role, where_role
from kb.documents.models import KnowledgeBase
from kb.embedding.models import EmbeddingModel
from kb.entries.models import Entry
from kb.types import Evidence
from qa.answers.evidence_models import AnswerEvidence
from qa.answers.models import Answer

if TYPE_CHECKING:
    from qa.gaps.services import Tried

TREND_PERIOD = timedelta(days=14)

# Impact: a question's weight halves every `HALF_LIFE`, and an asker counts as the
# square root of the total weight of their questions: ten people who ask once matter
# more than one who asks ten times. Weights are stored relative to a fixed day and grow
# forward instead of decaying backward (Cormode et al.: Forward Decay, ICDE 2009), so
# stored scores keep their order at any later time without being updated: the passing of
# time scales all of them alike.
HALF_LIFE = timedelta(days=30)
LANDMARK = datetime(2026, 1, 1, tzinfo=UTC)
"""The day that weights are relative to; a double overflows some 84 years later."""


def impact(score: float, at: datetime) -> float:
    """Return the impact of a stored score at a time: about how many people ask it now.

    One question asked just now by one person has an impact of 1.
    """
    return score * math.exp2(-((at - LANDMARK) / HALF_LIFE) / 2)


class GapQuerySet(models.QuerySet["Gap"]):
    def visible_to(self, user: AnyUser) -> Self:
        """Filter to gaps in knowledge bases where the user is an expert.

        Gaps filled by an entry that they may not see are left out: what their questions
        are answered from must stay hidden.
        """
        filled = Q(entry__in=Entry.objects.visible_to(user))
        return self.filter(
            where_role(user, Role.SME), Q(entry_id__isnull=True) | filled
        )

    def open(self) -> Self:
        return self.filter(state__in=[Gap.State.OPEN, Gap.State.DRAFTED])

    def ranked(self) -> Self:
        return self.order_by("-impact_score", "-pk")

    def with_trend(self, at: datetime) -> Self:
        """Annotate `recent` and `before`: questions of the last and previous period."""
        since = at - TREND_PERIOD
        return self.annotate(
            recent=_asked_between(since, at),
            before=_asked_between(since - TREND_PERIOD, since),
        )


def _asked_between(since: datetime, until: datetime) -> Coalesce:
    rows = (
        GapQuestion.objects.filter(
            gap=OuterRef("pk"), asked_at__gt=since, asked_at__lte=until
        )
        .order_by()
        .values("gap")
        .annotate(asked=Count("pk"))
        .values("asked")
    )
    return Coalesce(Subquery(rows), 0)


class Gap(models.Model):
    """Questions of one meaning that were refused, or whose answers were voted down.

    Found by the job `qa.find_gaps` in the background, which also updates its counts;
    the questions themselves are its `GapQuestion`s.
    """

    class State(models.TextChoices):
        """How far the gap is from being answered.

        A filled gap is reopened if its questions are refused again; a dismissed one
        stays dismissed and continues to count.
        """

        OPEN = "open", "open"
        DRAFTED = "drafted", "waiting for review"
        FILLED = "filled", "filled"
        DISMISSED = "dismissed", "dismissed"

    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.CASCADE, related_name="gaps"
    )
    question = models.TextField(
        help_text="The question nearest to the centroid when the gap was made."
    )
    embedding_model = optional_row(EmbeddingModel, "+")
    vector = VectorField(help_text="Centroid: mean direction, unit length.")
    state = models.CharField(max_length=9, choices=State.choices, default=State.OPEN)
    owner = optional_user("gaps", "The expert who works on it.", blank=True)
    entry = optional_row(Entry, "gaps", "The entry that fills it, once verified.")
    proposing_job_id = models.UUIDField(
        null=True, help_text="The enrichment job that proposes entries for it."
    )
    reason = models.TextField(
        blank=True, max_length=2000, help_text="Why it was dismissed."
    )
    questions = models.PositiveIntegerField(default=0)
    askers = models.PositiveIntegerField(default=0)
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField()
    impact_score = models.FloatField(
        default=0.0,
        help_text="Sort key by impact, valid at any time; `impact` gives a readable number.",
    )
    drafted_at = models.DateTimeField(
        null=True,
        help_text="When an entry was drafted; when it is verified, the questions are asked again.",
    )
    asked_again_at = models.DateTimeField(
        null=True, help_text="When its questions were last asked again."
    )
    closed_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = GapQuerySet.as_manager()

    recent: int  # from `with_trend`
    before: int  # from `with_trend`
    nearest_hits: "tuple[Evidence, ...]"  # from `fetch_shown`
    chosen: "list[tuple[Entry, list[str]]]"  # from `chosen_entries`
    tried: "list[Tried]"  # from `fetch_shown`
    refusal_reasons: "Counter[str]"  # from `count_reasons`
    unused_words: "Sequence[str]" = ()  # for curators, as `kb.synonyms` finds them

    class Meta:
        ordering = ["-impact_score", "-pk"]
        indexes = [
            models.Index(
                fields=["-impact_score", "-id"],
                name="gap_open_ranked",
                condition=Q(state__in=["open", "drafted"]),
            ),
            models.Index(fields=["state", "-impact_score", "-id"], name="gap_ranked"),
            models.Index(
                fields=["entry"], name="gap_drafted", condition=Q(state="drafted")
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["open", "drafted"], closed_at__isnull=True)
                | Q(state__in=["filled", "dismissed"], closed_at__isnull=False),
                name="gap_closed_has_time",
            ),
            models.CheckConstraint(
                condition=~Q(state="dismissed") | ~Q(reason=""),
                name="gap_dismissed_has_reason",
            ),
            models.CheckConstraint(
                condition=~Q(state="drafted") | Q(drafted_at__isnull=False),
                name="gap_drafted_has_time",
            ),
        ]

    def __str__(self) -> str:
        return self.question[:80]

    def open_again(self) -> None:
        """Clear what fills the gap, without saving it; its questions stay."""
        self.state, self.reason, self.closed_at = Gap.State.OPEN, "", None
        self.entry = self.proposing_job_id = self.drafted_at = None

    @property
    def is_open(self) -> bool:
        return self.state in (self.State.OPEN, self.State.DRAFTED)

    @property
    def can_be_filled(self) -> bool:
        """Whether nothing fills the gap yet: a second entry would replace the first."""
        return self.state == self.State.OPEN


class GapQuestionQuerySet(models.QuerySet["GapQuestion"]):
    def visible_to(self, user: AnyUser) -> Self:
        """Filter to questions whose answers `user` may look up."""
        answers = Answer.objects.visible_to(user).filter(pk=OuterRef("answer_id"))
        return self.filter(Exists(answers))

    def newest(self) -> Self:
        return self.order_by(F("asked_at").desc(), F("pk").desc())


class GapQuestion(models.Model):
    """A question that belongs to a gap, and why."""

    class Why(models.TextChoices):
        REFUSED = "refused", "refused"
        VOTED_DOWN = "voted_down", "voted down"

    gap = models.ForeignKey(Gap, on_delete=models.CASCADE, related_name="members")
    answer = models.OneToOneField(
        Answer, on_delete=models.CASCADE, related_name="gap_question"
    )
    asker = optional_user(
        "+", "Copy of the answer's asker, so that askers are counted without a join."
    )
    why = models.CharField(max_length=10, choices=Why.choices)
    distance = models.FloatField(
        help_text="Distance to the centroid when it joined; Euclidean, unit vectors."
    )
    asked_at = models.DateTimeField()

    objects = GapQuestionQuerySet.as_manager()

    class Meta:
        ordering = ["gap", "-asked_at", "-pk"]
        indexes = [
            models.Index(fields=["gap", "-asked_at"], name="gap_question_by_gap"),
            models.Index(
                fields=["answer"],
                name="gap_question_voted_down",
                condition=Q(why="voted_down"),
            ),
        ]

    def __str__(self) -> str:
        return f"answer {self.answer_id} in gap {self.gap_id}"


class GapCursor(models.Model):
    """How far answers and votes have been searched for gaps; a single row."""

    refused_to = models.DateTimeField(
        null=True, help_text="Refusals up to this time are in gaps."
    )
    voted_to = models.DateTimeField(
        null=True, help_text="Votes up to this time are in gaps."
    )

    def __str__(self) -> str:
        return f"refusals to {self.refused_to}, votes to {self.voted_to}"


class RepeatQuerySet(models.QuerySet["Repeat"]):
    def visible_to(self, user: AnyUser) -> Self:
        """Filter to repeats whose first answer `user` may look up."""
        answers = Answer.objects.visible_to(user).filter(pk=OuterRef("before_id"))
        return self.filter(Exists(answers))


class Repeat(models.Model):
    """A question that was asked again on behalf of its asker: before and after.

    Created before it is asked, so that a killed job neither forgets nor repeats it.
    """

    before = models.ForeignKey(Answer, on_delete=models.CASCADE, related_name="repeats")
    after = models.OneToOneField(
        Answer, on_delete=models.CASCADE, related_name="repeat_of"
    )
    gap = optional_row(Gap, "repeats")
    entry = optional_row(Entry, "+", "The entry that should answer it now.")
    is_better = models.BooleanField(
        null=True,
        help_text="Whether it is better: after a refusal, any answer; after an answer that was voted down, an answer that cites the entry. Empty until decided.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = RepeatQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]
        indexes = [
            models.Index(fields=["before", "-created_at"], name="repeat_newest"),
            models.Index(
                fields=["created_at"],
                name="repeat_undecided",
                condition=models.Q(is_better__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.before_id} asked again as {self.after_id}"

    def was_helped(self) -> bool:
        """Return whether the answer after is better than the one before (one query)."""
        after = self.after
        if after.outcome != Answer.Outcome.ANSWERED or after.is_unsourced:
            return False
        if self.before.outcome != Answer.Outcome.ANSWERED:
            return True
        cited = AnswerEvidence.objects.filter(
            answer=self.after, role=AnswerEvidence.Role.CITED
        )
        return cited.filter(entry=self.entry_id).exists()
