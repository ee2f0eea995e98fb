from django.conf import settings
from django.db import models
from django.db.models import Q

from kb.models import Entry


class ConfidenceMove(models.Model):
    """That votes moved the confidence of an enriched entry, or that this was undone.

    Rows are only ever added; one that `is_undo` takes all before it back.
    """

    entry = models.ForeignKey(
        Entry, on_delete=models.CASCADE, related_name="confidence_moves"
    )
    prior = models.FloatField(help_text="Its confidence without any vote.")
    before = models.FloatField()
    after = models.FloatField()
    up = models.FloatField(default=0.0, help_text="Weight of the raters for it.")
    down = models.FloatField(default=0.0, help_text="Weight of those against it.")
    raters = models.PositiveIntegerField(default=0, help_text="How many voted at all.")
    is_undo = models.BooleanField(
        default=False,
        help_text="A person took the moves back; votes of before count no more.",
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="Who undid it; empty where votes moved it.",
    )
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
