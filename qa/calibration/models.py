from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from qa.evaluation.models import EvaluationRun
from qa.policies.models import Policy

_SHARE = (MinValueValidator(0.0), MaxValueValidator(1.0))


class Certificate(models.Model):
    """With probability 1 - delta at most epsilon of the shown answers are wrong.

    Over the labelled answers drawn, for questions like those.
    """

    policy = models.OneToOneField(
        Policy, on_delete=models.PROTECT, related_name="certificate"
    )
    run = models.ForeignKey(
        EvaluationRun, on_delete=models.PROTECT, null=True, related_name="certificates"
    )
    method = models.CharField(max_length=40)
    epsilon = models.FloatField(validators=_SHARE)
    delta = models.FloatField(validators=_SHARE)
    labelled = models.PositiveIntegerField(
        help_text="Labelled answers in the test part."
    )
    shown = models.PositiveIntegerField(help_text="Shown answers of the test part.")
    wrong = models.PositiveIntegerField(help_text="Wrong answers among those shown.")
    bound = models.FloatField(
        validators=_SHARE, help_text="Upper bound on the risk, at 1 - delta."
    )
    coverage = models.FloatField(validators=_SHARE)
    learnt = models.PositiveIntegerField(
        default=0, help_text="Labelled answers in the learning part."
    )
    groups = models.PositiveIntegerField(
        default=0, help_text="Groups (articles) in the test part."
    )
    group_bound = models.FloatField(
        null=True,
        validators=_SHARE,
        help_text="Bound on the risk when groups are resampled whole; no guarantee.",
    )
    warnings = models.JSONField(default=list, help_text="Warnings, one sentence each.")
    thresholds = models.JSONField(default=dict)
    labels_sha256 = models.CharField(max_length=64)
    labels_source = models.CharField(max_length=200)
    signal_quantiles = models.JSONField(
        default=dict,
        help_text="{signal: quantiles on the labelled answers}, the reference for drift.",
    )
    embedder = models.CharField(max_length=64)
    language_model = models.CharField(max_length=200, blank=True)
    retrieval = models.CharField(max_length=100)
    probes = models.TextField(
        blank=True,
        help_text="Fingerprints of the probes that measured the labelled answers' confidences.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"at most {self.epsilon:.1%} wrong, {1 - self.delta:.0%} certain"


class DriftReading(models.Model):
    """A check whether live signals are distributed as the labelled ones were."""

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
        return bool(self.signals)
