from django.conf import settings
from django.db import models

from .probe import Probe


class ProbeChange(models.Model):
    """That a probe came into another state; rows are only ever added."""

    probe = models.ForeignKey(Probe, on_delete=models.CASCADE, related_name="changes")
    before = models.CharField(max_length=9, choices=Probe.State.choices, blank=True)
    after = models.CharField(max_length=9, choices=Probe.State.choices)
    replaced = models.ForeignKey(
        Probe,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text="The one that was active until then, if any was.",
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="probe_changes",
    )
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-at", "-pk"]

    def __str__(self) -> str:
        return f"{self.before or 'new'} to {self.after} at {self.at:%Y-%m-%d %H:%M}"
