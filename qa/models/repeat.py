from dataclasses import dataclass
from typing import Self

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import models
from django.db.models import Exists, OuterRef

from kb.models import Entry

from .answer import Answer, AnswerEvidence
from .gap import Gap


class RepeatQuerySet(models.QuerySet["Repeat"]):
    """Reads over questions that were asked again."""

    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        """Those whose first answer `user` may look up."""
        answers = Answer.objects.visible_to(user).filter(pk=OuterRef("before_id"))
        return self.filter(Exists(answers))


class Repeat(models.Model):
    """A question that was asked again on behalf of its asker: before and after.

    Written before it is asked, so that a killed job neither forgets nor repeats it.
    """

    before = models.ForeignKey(Answer, on_delete=models.CASCADE, related_name="repeats")
    after = models.OneToOneField(
        Answer, on_delete=models.CASCADE, related_name="repeat_of"
    )
    gap = models.ForeignKey(
        Gap, on_delete=models.SET_NULL, null=True, related_name="repeats"
    )
    entry = models.ForeignKey(
        Entry,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text="What is to answer it now.",
    )
    is_better = models.BooleanField(
        null=True,
        help_text="Whether it was answered: after a refusal by anything, after an answer "
        "that was voted down by the entry. Empty until it is decided.",
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
        """Tell whether what came after is better than what was before (one query)."""
        after = self.after
        if after.outcome != Answer.Outcome.ANSWERED or after.is_unsourced:
            return False
        if self.before.outcome != Answer.Outcome.ANSWERED:
            return True
        cited = AnswerEvidence.objects.filter(
            answer=self.after, role=AnswerEvidence.Role.CITED
        )
        return cited.filter(entry=self.entry_id).exists()


@dataclass(frozen=True, slots=True)
class Tried:
    """A question of a gap before its entry, and after where it was asked again.

    Attributes:
        before: With what `seen_by` adds, as `after`.
        is_better: None where it was not asked again, or is not decided yet.
    """

    why: str
    before: Answer
    after: Answer | None = None
    is_better: bool | None = None
