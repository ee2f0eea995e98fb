from typing import Self

from django.db import models
from django.db.models import Q

from accounts.models import optional_row, optional_user
from jobs.models import Job
from probes.cards import ANSWER_KINDS
from probes.models import Probe


class RetrainingQuerySet(models.QuerySet["Retraining"]):
    def undecided(self) -> Self:
        running = Q(
            state=Retraining.State.TRAINING,
            job__in=Job.objects.unfinished().values("pk"),
        )
        return self.filter(running | Q(state=Retraining.State.WAITING))


class Retraining(models.Model):
    class State(models.TextChoices):
        TRAINING = "training", "being trained"
        FAILED = "failed", "not possible"
        SHADOW = "shadow", "not better, in shadow"
        WAITING = "waiting", "better, waiting for approval"
        PROMOTED = "promoted", "active"
        DECLINED = "declined", "declined, in shadow"
        REVERTED = "reverted", "taken back"

    kind = models.CharField(
        max_length=10, choices=[(kind.value, kind.value) for kind in ANSWER_KINDS]
    )
    state = models.CharField(
        max_length=8, choices=State.choices, default=State.TRAINING
    )
    reviewed = models.PositiveIntegerField(
        help_text="Number of reviewed answers when it began."
    )
    labels = models.PositiveIntegerField(
        default=0, help_text="Labelled answers that it was fitted on."
    )
    labels_right = models.PositiveIntegerField(default=0)
    golden = models.PositiveIntegerField(
        default=0, help_text="Golden answers that both probes were compared on."
    )
    golden_right = models.PositiveIntegerField(default=0)
    champion = optional_row(Probe, "+", "The probe that was active.")
    challenger = optional_row(Probe, "retrainings", "The new probe.")
    champion_auroc = models.FloatField(null=True)
    challenger_auroc = models.FloatField(null=True)
    low = models.FloatField(
        null=True,
        help_text="Lower end of the 95 % interval of challenger minus champion.",
    )
    high = models.FloatField(null=True)
    scores = models.JSONField(
        default=list,
        help_text="[former confidence, new one, is right, weight] of each golden answer.",
    )
    recalibrated = models.JSONField(
        default=list,
        help_text="[before, after]: the policies whose minimum was set for the new probe.",
    )
    reason = models.TextField(blank=True, help_text="Why retraining was not possible.")
    job = optional_row(Job, "+")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = RetrainingQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["kind"],
                condition=Q(state="training"),
                name="retraining_one_at_a_time",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} retraining {self.pk}"


class RetrainingStep(models.Model):
    """A retraining's change of state; rows are only added, never changed."""

    retraining = models.ForeignKey(
        Retraining, on_delete=models.CASCADE, related_name="steps"
    )
    before = models.CharField(
        max_length=8, choices=Retraining.State.choices, blank=True
    )
    after = models.CharField(max_length=8, choices=Retraining.State.choices)
    by = optional_user("+", "Who decided; empty if automatic.")
    note = models.CharField(max_length=300, blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.before or 'new'} to {self.after}"
