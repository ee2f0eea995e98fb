from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone

from kb.documents.models import KnowledgeBase
from qa.evaluation.models import EvaluationRun
from qa.policies.models import Policy

_SHARE = (MinValueValidator(0.0), MaxValueValidator(1.0))


class Certificate(models.Model):
    """The guarantee that at most epsilon of the shown answers are wrong.

    It holds with probability 1 - delta over the sampling of the labelled answers, for
    questions drawn like those.
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
    shown = models.PositiveIntegerField(help_text="Shown answers in the test part.")
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
        help_text="Upper bound on the risk over groups; null if given before it was held.",
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
    """A check whether live signals are still distributed like the labelled ones."""

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


class SelfCalibrationSettings(models.Model):
    """A knowledge base's self-calibration settings; without a row, the defaults."""

    class Wrong(models.IntegerChoices):
        TEN = 10, "at most 1 in 10 shown answers wrong"
        TWENTY = 20, "at most 1 in 20 shown answers wrong"
        FIFTY = 50, "at most 1 in 50 shown answers wrong"
        HUNDRED = 100, "at most 1 in 100 shown answers wrong"

    class Mode(models.TextChoices):
        OFF = "off", "never"
        PROPOSE = "propose", "propose a version"
        ACTIVATE = "activate", "activate the version at once"

    knowledge_base = models.OneToOneField(
        KnowledgeBase,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="self_calibration_settings",
    )
    wrong_share_target = models.PositiveSmallIntegerField(
        "wrong answers",
        choices=Wrong.choices,
        default=Wrong.TWENTY,
        help_text="Measured on its own questions, so it is not a promise about "
        "people's questions.",
    )
    calibrates_itself = models.CharField(
        "when its knowledge has changed",
        max_length=8,
        choices=Mode.choices,
        default=Mode.ACTIVATE,
        help_text="A version whose thresholds a person set is never replaced "
        "automatically.",
    )

    uses_evaluations = models.BooleanField(
        "use labelled questions too",
        default=False,
        help_text="Those of the newest evaluation of own questions, which can then no "
        "longer serve as a test. Questions judged in reviews are always used.",
    )

    def __str__(self) -> str:
        return f"{self.knowledge_base}: {self.get_calibrates_itself_display()}"

    @property
    def target(self) -> float:
        return 1 / self.wrong_share_target


class SelfCalibration(models.Model):
    """The result of a self-calibration: the chosen threshold and counts, no texts."""

    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.CASCADE, related_name="self_calibrations"
    )
    policy = models.ForeignKey(
        Policy,
        on_delete=models.PROTECT,
        related_name="self_calibrations",
        help_text="The version that it created, or that already had its thresholds.",
    )
    target = models.FloatField(
        validators=_SHARE,
        help_text="Largest permitted share of wrong answers among those shown.",
    )
    unanswerable = models.FloatField(
        validators=_SHARE,
        help_text="Assumed share of questions without an answer, half of them foreign.",
    )
    min_entry_answer = models.FloatField(
        help_text="The threshold; 1.01: none meets the target."
    )
    entries = models.PositiveIntegerField(
        help_text="Entries that its own questions were made from."
    )
    own = models.PositiveIntegerField(
        help_text="Own questions, each asked with its entry and without it."
    )
    foreign = models.PositiveIntegerField(help_text="Questions from other trades.")
    reviewed = models.PositiveIntegerField(
        default=0,
        help_text="Questions that experts judged in reviews, weighted by strata.",
    )
    evaluated = models.PositiveIntegerField(
        default=0, help_text="Labelled questions of the newest evaluation, if used."
    )
    named = models.PositiveIntegerField(
        default=0, help_text="Own questions whose entry was named in a vote."
    )
    shown = models.PositiveIntegerField(help_text="Answers shown at the threshold.")
    wrong = models.PositiveIntegerField(help_text="Wrong ones among those shown.")
    wrong_share = models.FloatField(null=True, validators=_SHARE)
    wrong_low = models.FloatField(null=True, validators=_SHARE)
    wrong_high = models.FloatField(null=True, validators=_SHARE)
    answered_share = models.FloatField(
        validators=_SHARE,
        help_text="Share of its own questions that are answered correctly.",
    )
    answered_low = models.FloatField(null=True, validators=_SHARE)
    answered_high = models.FloatField(null=True, validators=_SHARE)
    curve = models.JSONField(
        default=list,
        help_text="[threshold, share answered, share wrong], each of them a list.",
    )
    notes = models.JSONField(default=list, help_text="One sentence each.")
    not_activated = models.CharField(
        max_length=200, blank=True, help_text="Why the version was only proposed."
    )
    seed = models.IntegerField(default=0)
    verifier = models.CharField(max_length=64)
    embedder = models.CharField(max_length=64)
    retrieval = models.CharField(max_length=100)
    created_at = models.DateTimeField(
        default=timezone.now,
        editable=False,
        help_text="When its questions were drawn; later changes are not measured.",
    )

    class Meta:
        ordering = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.policy}, from own questions"

    @property
    def labelled(self) -> int:
        """The number of questions that people asked and somebody judged."""
        return self.reviewed + self.evaluated

    @property
    def answers(self) -> bool:
        """Whether an entry answers by itself."""
        return self.min_entry_answer <= 1

    @property
    def is_earned(self) -> bool:
        """Whether the threshold meets the target; the safest one may fail to."""
        return self.answers and (self.wrong_share or 0.0) <= self.target
