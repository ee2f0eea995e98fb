from django.db import models
from django.db.models import Q

from accounts.models import optional_row, optional_user
from kb.documents.models import KnowledgeBase
from qa.answers.models import Answer
from qa.policies.models import Policy


class EvaluationRun(models.Model):
    """A suite asked under one policy; results are stored one by one, by question id."""

    class State(models.TextChoices):
        RUNNING = "running", "running"
        FINISHED = "finished", "finished"

    suite = models.CharField(max_length=60)
    key = models.CharField(
        max_length=64,
        help_text="Digest of the run's inputs and models; a run with the same key continues.",
    )
    state = models.CharField(max_length=8, choices=State.choices, default=State.RUNNING)
    parameters = models.JSONField(
        default=dict, help_text="Suite, data digest, limit, seed, gold ratio, shadow."
    )
    protocol = models.TextField(
        blank=True, help_text="Questions, knowledge and known leakage."
    )
    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.PROTECT, null=True, related_name="evaluations"
    )
    policy = models.ForeignKey(
        Policy, on_delete=models.PROTECT, null=True, related_name="evaluations"
    )
    total = models.PositiveIntegerField(help_text="Total number of questions.")
    embedder = models.CharField(max_length=64, blank=True)
    language_model = models.CharField(max_length=200, blank=True)
    retrieval = models.CharField(max_length=100, blank=True)
    probes = models.TextField(
        blank=True, help_text="Fingerprints of the active probes, separated by spaces."
    )
    report = models.JSONField(default=dict)
    started_by = optional_user("evaluations")
    started_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-started_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["key"],
                condition=Q(state="running"),
                name="evaluation_run_one_running",
            )
        ]

    def __str__(self) -> str:
        return f"{self.suite}, {self.started_at:%Y-%m-%d %H:%M}"


class EvaluationResult(models.Model):
    run = models.ForeignKey(
        EvaluationRun, on_delete=models.CASCADE, related_name="results"
    )
    case_id = models.CharField(max_length=200)
    group = models.CharField(
        max_length=200,
        blank=True,
        help_text="What resampling keeps together: an article, a category.",
    )
    answer = optional_row(Answer, "evaluations")
    is_answerable = models.BooleanField(
        null=True,
        help_text="Whether it should be answered; unknown for multiple choice.",
    )
    is_answered = models.BooleanField(
        help_text="Whether the run's own policy answered it."
    )
    gate = models.CharField(max_length=12, blank=True)
    reason = models.CharField(max_length=20, blank=True)
    is_correct = models.BooleanField(
        null=True,
        help_text="Whether the draft is right, shown or not; unknown where there is no draft.",
    )
    signals = models.JSONField(default=dict, help_text="{name: value}")
    measures = models.JSONField(
        default=dict, help_text="{name: number}: f1, exact_match, rouge_l, rank, ..."
    )
    milliseconds = models.FloatField(help_text="Time of the whole question.")
    model_milliseconds = models.FloatField(
        default=0.0, help_text="Time in the language model."
    )

    class Meta:
        ordering = ["run", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["run", "case_id"], name="evaluation_result_once"
            )
        ]

    def __str__(self) -> str:
        return self.case_id
