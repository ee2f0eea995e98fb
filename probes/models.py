"""The registry: probes with their files, and who changed their states when."""

from typing import Self

from django.db import models
from django.db.models import Q

from accounts.models import optional_row, optional_user
from probes.cards import ANSWER_KINDS, UNPLACED, ProbeCard, ProbeFiles, ProbeKind

_UNPLACED = [kind.value for kind in UNPLACED]


class ProbeQuerySet(models.QuerySet["Probe"]):
    def light(self) -> Self:
        return self.defer("weights")

    def serving(self) -> Self:
        """Return the probes asked of every answer: active ones and those in shadow."""
        return self.filter(
            kind__in=ANSWER_KINDS, state__in=[Probe.State.ACTIVE, Probe.State.SHADOW]
        )

    def active_for(self, *language_models: str) -> Self:
        return self.filter(state=Probe.State.ACTIVE, language_model__in=language_models)


class Probe(models.Model):
    """A fitted probe with its files and its state.

    The files never change, so the probe that decided an answer can be read again.
    """

    class State(models.TextChoices):
        """What a probe is used for.

        A candidate is stored but not asked; one in shadow is asked of every answer but
        refuses none; at most one of each kind and language model is active.
        """

        CANDIDATE = "candidate", "candidate"
        SHADOW = "shadow", "shadow"
        ACTIVE = "active", "active"
        RETIRED = "retired", "retired"

    kind = models.CharField(
        max_length=10, choices=[(kind.value, kind.value) for kind in ProbeKind]
    )
    language_model = models.CharField(
        max_length=64,
        help_text="Fingerprint of the model whose activations or signals it reads.",
    )
    language_model_name = models.CharField(max_length=200, blank=True)
    form = models.CharField(
        max_length=50,
        blank=True,
        help_text="The prompt form whose activations it reads.",
    )
    layer = models.PositiveSmallIntegerField(null=True, help_text="0-based block.")
    part = models.CharField(max_length=5, blank=True, help_text="block or ffn")
    data_sha256 = models.CharField(
        max_length=64, help_text="Digest of the labelled answers that it was fitted on."
    )
    sizes = models.JSONField(default=dict, help_text="{answers, groups, width}")
    metrics = models.JSONField(default=dict, help_text="Measured on held-out folds.")
    temperature = models.FloatField(
        help_text="Divisor of its logits; fitted on held-out answers."
    )
    state = models.CharField(
        max_length=9, choices=State.choices, default=State.CANDIDATE
    )
    fingerprint = models.CharField(
        max_length=64, unique=True, help_text="Digest of card and weights."
    )
    card = models.TextField(help_text="probe.json, unchanged.")
    weights = models.BinaryField(help_text="The weights file.")
    note = models.CharField(max_length=300, blank=True)
    created_by = optional_user("probes")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ProbeQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "language_model"],
                condition=Q(state="active"),
                name="probe_one_active",
            ),
            models.CheckConstraint(
                condition=Q(kind__in=_UNPLACED, layer__isnull=True)
                | (~Q(kind__in=_UNPLACED) & Q(layer__isnull=False)),
                name="probe_layer_by_kind",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} probe {self.fingerprint[:8]}"

    @property
    def files(self) -> ProbeFiles:
        return ProbeFiles(str(self), self.card.encode(), bytes(self.weights))

    @property
    def parsed_card(self) -> ProbeCard:
        return ProbeFiles(str(self), self.card.encode(), b"").parsed()

    @property
    def signal(self) -> str:
        """The signal that stores its confidence with answers while it is in shadow."""
        return f"{self.kind}_{self.fingerprint[:8]}"


class ProbeChange(models.Model):
    """A change of a probe's state; rows are only ever added."""

    probe = models.ForeignKey(Probe, on_delete=models.CASCADE, related_name="changes")
    before = models.CharField(max_length=9, choices=Probe.State.choices, blank=True)
    after = models.CharField(max_length=9, choices=Probe.State.choices)
    replaced = optional_row(Probe, "+", "The previously active probe, if any.")
    by = optional_user("probe_changes")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-at", "-pk"]

    def __str__(self) -> str:
        return f"{self.before or 'new'} to {self.after} at {self.at:%Y-%m-%d %H:%M}"
