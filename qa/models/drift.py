from django.db import models

from .certificate import Certificate


class DriftReading(models.Model):
    """One look at whether live signals are still distributed as the labelled ones were.

    Where they are not, the questions are others than those that the promise speaks of.
    """

    certificate = models.ForeignKey(
        Certificate, on_delete=models.CASCADE, related_name="drift_readings"
    )
    answers = models.PositiveIntegerField(help_text="Live answers that were compared.")
    first_at = models.DateTimeField(null=True, help_text="When the oldest was asked.")
    last_at = models.DateTimeField(null=True, help_text="When the newest was asked.")
    signals = models.JSONField(
        default=dict,
        help_text="{signal: reference and live counts, Kolmogorov-Smirnov distance, "
        "population stability index, p-values, has_drifted}; empty where too few.",
    )
    has_drifted = models.BooleanField()
    checked_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-checked_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.certificate.policy}, {self.checked_at:%Y-%m-%d %H:%M}"

    @property
    def was_possible(self) -> bool:
        """Whether there were answers enough to compare any signal."""
        return bool(self.signals)
