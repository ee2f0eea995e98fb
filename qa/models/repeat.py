import uuid
from typing import Self

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import models
from django.db.models import Exists, OuterRef

from kb.models import Entry

from .answer import Answer
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
    job_id = models.UUIDField(default=uuid.uuid4)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = RepeatQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["before", "job_id"], name="repeat_once_a_job"
            )
        ]

    def __str__(self) -> str:
        return f"{self.before_id} asked again as {self.after_id}"
