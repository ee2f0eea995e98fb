from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Exists, OuterRef, Q

from accounts.models import optional_row, optional_user
from accounts.people import AnyUser
from accounts.roles import Role, where_role
from kb.entries.models import Entry
from kb.tags.models import Tag
from qa.answers.models import Answer

from .sample_models import ReviewStratum


class ReviewQuerySet(models.QuerySet["Review"]):
    def visible_to(self, user: AnyUser) -> Self:
        """Filter to reviews whose answers an expert may read in full; add `is_blind`.

        Reviews of answers based on evidence hidden from the expert are left to others,
        as are those from which such an entry was made.
        """
        answers = Answer.objects.visible_to(user).filter(pk=OuterRef("answer_id"))
        whole = answers.filter(is_withheld=False)  # type: ignore[misc]  # annotated by `seen_by`
        own = Q(reviewed_by=user.pk)
        kept = Q(entry_id__isnull=True) | Q(
            entry__in=Entry.objects.always_visible_to(user)
        )
        other_round = Review.objects.open().filter(answer=OuterRef("answer_id"))
        waits = Exists(other_round.exclude(pk=OuterRef("pk")))
        mine = where_role(user, Role.SME, "answer__knowledge_base")
        return self.filter(mine, own | kept, Exists(whole)).annotate(is_blind=waits)

    def done(self) -> Self:
        return self.filter(state=Review.State.DONE)

    def teaching(self) -> Self:
        """Filter to done reviews of answers whose text has not been erased."""
        return self.done().filter(answer__erased_at__isnull=True)

    def open(self) -> Self:
        """Filter to those not judged yet: waiting, locked or skipped."""
        return self.exclude(state=Review.State.DONE)

    def held_at(self, at: datetime) -> Self:
        return self.filter(state=Review.State.LOCKED, locked_until__gt=at)


class Review(models.Model):
    """One expert's judgement of one answer or refusal, or the slot for it.

    An answer is graded; for a refusal, the review states whether it should have been
    answered. When a judgement is undone, its values stay as its reviewer's draft.
    """

    class State(models.TextChoices):
        """The state of the review; skipped ones are queued behind the others."""

        WAITING = "waiting", "waiting"
        LOCKED = "locked", "in progress"
        DONE = "done", "done"
        SKIPPED = "skipped", "skipped"

    class Grade(models.IntegerChoices):
        NOT = 0, "no"
        PARTLY = 1, "partly"
        WHOLLY = 2, "yes"

    # The field values of a judged answer that was right to show: correct, supported by
    # its evidence, and sufficient.
    RIGHT_TO_SHOW: ClassVar[Mapping[str, object]] = {
        "correctness": Grade.WHOLLY,
        "truthfulness": Grade.WHOLLY,
        "falls_short": False,
    }

    answer = models.ForeignKey(Answer, on_delete=models.CASCADE, related_name="reviews")
    stratum = models.ForeignKey(
        ReviewStratum,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="reviews",
        help_text="The stratum it was drawn from; empty if it was requested by hand.",
    )
    round = models.PositiveSmallIntegerField(
        default=1,
        help_text="2 for the second opinion, which is given without seeing the first.",
    )
    tag = optional_row(Tag, "reviews", "The tag whose experts review it.", blank=True)
    assignee = optional_user(
        "assigned_reviews",
        "The expert who is to review it; empty for all experts.",
        blank=True,
    )
    state = models.CharField(max_length=7, choices=State.choices, default=State.WAITING)
    locked_by = optional_user("locked_reviews", blank=True)
    locked_until = models.DateTimeField(null=True, blank=True)
    skipped_by = optional_user(
        "+", "Who skipped it last; it is not offered to them again.", blank=True
    )
    completeness = models.PositiveSmallIntegerField(
        null=True, blank=True, choices=Grade.choices
    )
    correctness = models.PositiveSmallIntegerField(
        null=True, blank=True, choices=Grade.choices
    )
    truthfulness = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        choices=Grade.choices,
        help_text="Whether the evidence supports the answer.",
    )
    should_be_answered = models.BooleanField(
        null=True, blank=True, help_text="For a refusal: whether it was false."
    )
    evidence_used = ArrayField(
        models.BigIntegerField(),
        default=list,
        blank=True,
        help_text="Ids of the pieces of evidence that support the right answer.",
    )
    falls_short = models.BooleanField(
        default=False,
        help_text="Whether the policy counts it as a false answer although it is "
        "correct and true to its evidence.",
    )
    ideal_answer = models.TextField(
        blank=True, max_length=8000, help_text="The ideal answer."
    )
    note = models.TextField(blank=True, max_length=2000)
    entry = optional_row(
        Entry,
        "reviews",
        "The entry that was added or edited in the review.",
        blank=True,
    )
    reviewed_by = optional_user(
        "reviews", "Who judged it; until then, the author of the draft.", blank=True
    )
    reviewed_at = models.DateTimeField(null=True, blank=True)
    seconds_spent = models.PositiveIntegerField(
        null=True, blank=True, help_text="Seconds from the lock to the judgement."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ReviewQuerySet.as_manager()

    is_blind: bool  # from `visible_to`: whether the other round is still to be judged

    class Meta:
        ordering = ["-created_at", "-pk"]
        indexes = [
            models.Index(fields=["-created_at", "-id"], name="review_newest"),
            models.Index(fields=["-reviewed_at", "-id"], name="review_judged"),
            # Second opinions, which are few, for computing agreement.
            models.Index(
                fields=["answer"],
                name="review_second_judged",
                condition=Q(round=2, state="done"),
            ),
            # The queue in its order: waiting reviews before skipped ones.
            models.Index(
                fields=["-state", "created_at", "id"],
                name="review_queue",
                condition=~Q(state="done"),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["answer", "round"], name="review_one_a_round"
            ),
            models.CheckConstraint(
                condition=Q(round__in=[1, 2]), name="review_round_known"
            ),
            models.CheckConstraint(
                condition=Q(state="done", reviewed_at__isnull=False)
                | (~Q(state="done") & Q(reviewed_at__isnull=True)),
                name="review_done_when_judged",
            ),
            models.CheckConstraint(
                condition=~Q(state="done")
                | Q(should_be_answered__isnull=False)
                | Q(
                    completeness__isnull=False,
                    correctness__isnull=False,
                    truthfulness__isnull=False,
                ),
                name="review_says_something",
            ),
            models.CheckConstraint(
                condition=Q(state="locked", locked_until__isnull=False)
                | (~Q(state="locked") & Q(locked_until__isnull=True)),
                name="review_lock_ends",
            ),
            models.CheckConstraint(
                condition=(Q(completeness__isnull=True) | Q(completeness__lte=2))
                & (Q(correctness__isnull=True) | Q(correctness__lte=2))
                & (Q(truthfulness__isnull=True) | Q(truthfulness__lte=2)),
                name="review_grades_in_range",
            ),
        ]

    def __str__(self) -> str:
        return f"review {self.pk}, round {self.round}"

    def is_held(self, at: datetime) -> bool:
        return self.locked_until is not None and self.locked_until > at

    def is_readable_by(self, user: AnyUser) -> bool:
        """Return whether `user` may read the judgement of one of `visible_to`.

        A draft is visible only to its reviewer, and so is a judgement until the other
        round is judged, which it would influence.
        """
        is_open = self.state == self.State.DONE and not self.is_blind
        return is_open or (self.reviewed_by_id == user.pk and user.pk is not None)

    @property
    def is_right_to_show(self) -> bool | None:
        """Whether a judged answer was right to show; None for all other reviews.

        The requirements are those of the policy that was active when it was judged.
        """
        if self.state != self.State.DONE or self.correctness is None:
            return None
        wanted = self.RIGHT_TO_SHOW.items()
        return all(getattr(self, name) == value for name, value in wanted)
