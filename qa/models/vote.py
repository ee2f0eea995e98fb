from django.conf import settings
from django.db import models

from .answer import Answer


class Vote(models.Model):
    """One user's thumb on one answer or refusal."""

    answer = models.ForeignKey(Answer, on_delete=models.CASCADE, related_name="votes")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="votes"
    )
    is_up = models.BooleanField()
    comment = models.TextField(blank=True, max_length=2000)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-updated_at"]
        constraints = [
            models.UniqueConstraint(fields=["answer", "user"], name="vote_one_each"),
        ]

    def __str__(self) -> str:
        return "up" if self.is_up else "down"
