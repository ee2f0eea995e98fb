from typing import Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Exists, OuterRef, Q, Subquery
from django.utils import timezone

from accounts.models import optional_user
from accounts.people import AnyUser
from accounts.roles import Role, bases_of_role
from kb.documents.models import KnowledgeBase
from kb.entries.models import Entry
from kb.upkeep.models import Flag
from qa.answers.evidence_models import withholds
from qa.answers.models import Answer
from qa.policies.wording import words_in

_SAID = words_in("en").labels


class VoteQuerySet(models.QuerySet["Vote"]):
    def visible_to(self, user: AnyUser) -> Self:
        """Return votes on answers that `user` may look up; annotate `is_withheld`.

        If it is set, neither the answer nor the comments on it may be shown.
        `shown_answering_entry` is the id of the entry named, if `user` may see it.
        """
        answers = Answer.objects.visible_to(user).filter(pk=OuterRef("answer_id"))
        withheld = withholds(user, "answer_id")
        named = Entry.objects.visible_to(user).filter(pk=OuterRef("answering_entry"))
        return self.filter(Exists(answers)).annotate(
            is_withheld=withheld, shown_answering_entry=Subquery(named.values("pk"))
        )

    def readable_by(self, user: AnyUser) -> Self:
        """Return the user's own votes, and everybody's where the user is an expert."""
        bases = bases_of_role(user, Role.SME)
        if bases is None:
            return self
        return self.filter(Q(user_id=user.pk) | Q(answer__knowledge_base__in=bases))

    def open(self) -> Self:
        """Return votes that nobody has dealt with yet."""
        return self.filter(handled_at__isnull=True)

    def naming_an_entry(self, knowledge_base: KnowledgeBase) -> Self:
        """Return votes that name a verified entry as answer to a refused question."""
        entries = Entry.objects.filter(state=Entry.State.VERIFIED)
        named = self.filter(
            answering_entry__in=entries.current(timezone.now()),
            answer__knowledge_base=knowledge_base,
            answer__erased_at__isnull=True,
        )
        return named.select_related("answer", "answering_entry")


class Vote(models.Model):
    """One user's thumb on one answer or refusal, and what they say is wrong with it."""

    class Reason(models.TextChoices):
        """What is wrong; answers and refusals have different reasons."""

        WRONG = "wrong", Flag.Reason.WRONG.label
        INCOMPLETE = "incomplete", Flag.Reason.INCOMPLETE.label
        OUTDATED = "outdated", Flag.Reason.OUTDATED.label
        OFF_TOPIC = "off_topic", "It answers another question"
        NOT_IN_EVIDENCE = "not_in_evidence", "The evidence does not say so"
        UNCLEAR = "unclear", Flag.Reason.UNCLEAR.label
        SHOULD_BE_KNOWN = "should_be_known", _SAID["reason_should_be_known"]
        ENTRY_EXISTS = "entry_exists", _SAID["reason_entry_exists"]
        WRONG_REASON = "wrong_reason", _SAID["reason_wrong_reason"]
        OTHER = "other", _SAID["reason_other"]

    answer = models.ForeignKey(Answer, on_delete=models.CASCADE, related_name="votes")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="votes"
    )
    is_up = models.BooleanField()
    reasons = ArrayField(
        models.CharField(max_length=20, choices=Reason.choices),
        default=list,
        blank=True,
        help_text="What is wrong; only with a thumbs down.",
    )
    comment = models.TextField(blank=True, max_length=2000)
    expected_answer = models.TextField(
        blank=True,
        max_length=4000,
        help_text="The expected answer; only with a thumbs down.",
    )
    answering_entry = models.ForeignKey(
        Entry,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="The entry beside a refusal that answers the question.",
    )
    handled_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was marked as handled."
    )
    handled_by = optional_user("handled_votes", blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = VoteQuerySet.as_manager()

    # From `visible_to`, without which nothing is shown.
    is_withheld: bool
    shown_answering_entry: int | None

    class Meta:
        ordering = ["-updated_at", "-pk"]
        indexes = [
            models.Index(fields=["-created_at", "-id"], name="vote_newest"),
            models.Index(fields=["-updated_at", "-id"], name="vote_changed"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["answer", "user"], name="vote_one_each")
        ]

    def __str__(self) -> str:
        return "up" if self.is_up else "down"

    @property
    def shown_comment(self) -> str:
        """The comment; empty if withheld from the user of `visible_to`."""
        return "" if self.is_withheld else self.comment

    @property
    def shown_expected_answer(self) -> str:
        return "" if self.is_withheld else self.expected_answer

    @property
    def shown_answer(self) -> str:
        return "" if self.is_withheld else self.answer.text

    @property
    def reason_words(self) -> list[str]:
        return [self.Reason(reason).label for reason in self.reasons]


_OF_AN_ANSWER = (
    Vote.Reason.WRONG, Vote.Reason.INCOMPLETE, Vote.Reason.OUTDATED,
    Vote.Reason.OFF_TOPIC, Vote.Reason.NOT_IN_EVIDENCE, Vote.Reason.UNCLEAR,
    Vote.Reason.OTHER,
)  # fmt: skip
_OF_A_REFUSAL = (
    Vote.Reason.SHOULD_BE_KNOWN, Vote.Reason.ENTRY_EXISTS, Vote.Reason.WRONG_REASON,
    Vote.Reason.OTHER,
)  # fmt: skip


def reasons_against(answer: Answer) -> tuple[Vote.Reason, ...]:
    is_answered = answer.outcome == Answer.Outcome.ANSWERED
    return _OF_AN_ANSWER if is_answered else _OF_A_REFUSAL


class ConfidenceMove(models.Model):
    """A change of an enriched entry's confidence by votes, or its undoing.

    Rows are only ever added; one with `is_undo` reverts all before it.
    """

    entry = models.ForeignKey(
        Entry, on_delete=models.CASCADE, related_name="confidence_moves"
    )
    prior = models.FloatField(help_text="Confidence without votes.")
    before = models.FloatField()
    after = models.FloatField()
    up = models.FloatField(default=0.0, help_text="Weight of raters in favour.")
    down = models.FloatField(default=0.0, help_text="Weight of raters against.")
    raters = models.PositiveIntegerField(default=0, help_text="Number of raters.")
    is_undo = models.BooleanField(
        default=False,
        help_text="A person undid the changes; earlier votes no longer count.",
    )
    by = optional_user("+", "Who undid it; empty for a change by votes.", blank=True)
    reason = models.CharField(max_length=300, blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-at", "-pk"]
        indexes = [models.Index(fields=["entry", "-id"], name="confidence_move_newest")]
        constraints = [
            models.CheckConstraint(
                condition=Q(prior__gt=0, prior__lt=1, after__gt=0, after__lt=1),
                name="confidence_move_in_range",
            )
        ]

    def __str__(self) -> str:
        what = "undone" if self.is_undo else "moved"
        return f"entry {self.entry_id} {what}: {self.before:.2f} to {self.after:.2f}"


class UseCursor(models.Model):
    """How far the evidence is counted into the entries' uses; a single row."""

    counted_to = models.BigIntegerField(
        default=0, help_text="Evidence up to this id is counted."
    )
    noted_to = models.BigIntegerField(
        default=0, help_text="The largest id at the last run."
    )
    noted_before = models.BigIntegerField(
        null=True,
        help_text="A later transaction: when all before it have ended, no further id up to `noted_to` can appear.",
    )

    def __str__(self) -> str:
        return f"counted to {self.counted_to}"


class VoteChange(models.Model):
    """A vote given, changed or taken back that is not yet added to the entries' counts.

    Written by a trigger on votes, deleted when it is added.
    """

    answer = models.ForeignKey(
        Answer,
        on_delete=models.DO_NOTHING,
        db_constraint=False,  # an answer may be deleted with its votes
        db_index=False,
        related_name="+",
    )
    up = models.SmallIntegerField(help_text="1, 0 or -1.")
    down = models.SmallIntegerField(help_text="1, 0 or -1.")

    def __str__(self) -> str:
        return f"votes of answer {self.answer_id}: {self.up:+d} up, {self.down:+d} down"
