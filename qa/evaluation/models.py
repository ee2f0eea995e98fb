from typing import Self

from django.contrib.auth.models import Group
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Exists, OuterRef, Q

from accounts.models import optional_row, optional_user
from accounts.people import AnyUser
from accounts.roles import Role, where_role
from kb.audiences.models import Audience
from kb.documents.models import KnowledgeBase
from kb.entries.models import Entry
from qa.answers.models import Answer
from qa.pipeline.gates import Gate, Reason
from qa.policies.models import Policy


class EvaluationRun(models.Model):
    """A run of a suite, under a policy if any; results are stored by question id."""

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
        help_text="Unit that resampling keeps together, such as an article or a "
        "category.",
    )
    answer = optional_row(Answer, "evaluations")
    is_answerable = models.BooleanField(
        null=True,
        help_text="Whether it should be answered; empty for multiple choice.",
    )
    is_answered = models.BooleanField(
        help_text="Whether the run's own policy answered it."
    )
    gate = models.CharField(max_length=12, blank=True)
    reason = models.CharField(max_length=20, blank=True)
    is_correct = models.BooleanField(
        null=True,
        help_text="Whether the draft is right, even if it was not shown; empty if "
        "there is no draft.",
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


class SavedCaseQuerySet(models.QuerySet["SavedCase"]):
    def visible_to(self, user: AnyUser) -> Self:
        """Filter for cases whose entries and askers' audiences an expert may see.

        A question reveals what its asker knows to exist, and may be written from an
        entry.
        """
        entries = Entry.objects.always_visible_to(user).filter(pk=OuterRef("entry_id"))
        # Via the through table: an entry hidden from the reader can't be joined
        # directly.
        named = SavedCase.entries.through.objects.filter(savedcase=OuterRef("pk"))
        audiences = Audience.objects.visible_to(user).values("pk")
        beyond = Audience.objects.exclude(pk__in=audiences)
        askers = beyond.filter(groups__saved_cases=OuterRef("pk"))
        return self.filter(
            where_role(user, Role.SME),
            ~Exists(named.filter(~Exists(entries))),
            ~Exists(askers),
        )


class SavedCase(models.Model):
    """A question and its expected outcome, asked before a policy is activated.

    Its columns are the fields of `Case`, where their meaning is documented.
    """

    class Expect(models.TextChoices):
        ANSWERED = "answered", "answered"
        REFUSED = "refused", "refused"

    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.CASCADE, related_name="saved_cases"
    )
    key = models.CharField(
        max_length=200, help_text="Its id in files; unique in the knowledge base."
    )
    question = models.TextField(max_length=2000)
    expect = models.CharField(max_length=8, choices=Expect.choices)
    entries = models.ManyToManyField(
        Entry,
        blank=True,
        related_name="saved_cases",
        help_text="One of them must be cited; empty: any entry may be cited.",
    )
    answer_contains = ArrayField(
        models.CharField(max_length=500),
        default=list,
        blank=True,
        help_text="One of these must be in the answer.",
    )
    references = ArrayField(
        models.CharField(max_length=500), default=list, blank=True,
        help_text="Right answers, one of which must be in the answer.",
    )  # fmt: skip
    gate = models.CharField(
        max_length=12, blank=True, choices=[(g.value, g.value) for g in Gate],
        help_text="The gate that must decide it.",
    )  # fmt: skip
    reason = models.CharField(
        max_length=20, blank=True, choices=[(r.value, r.value) for r in Reason],
        help_text="The reason that the asker must be shown.",
    )  # fmt: skip
    group = models.CharField(
        max_length=200,
        blank=True,
        help_text="Cases of one group are kept together in resampling.",
    )
    groups = models.ManyToManyField(
        Group,
        blank=True,
        related_name="saved_cases",
        help_text="The asker's groups, in addition to the role agent.",
    )
    created_by = optional_user("saved_cases")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = SavedCaseQuerySet.as_manager()

    class Meta:
        verbose_name = "test case"
        ordering = ["knowledge_base", "question", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["knowledge_base", "key"], name="saved_case_key_unique"
            )
        ]

    def __str__(self) -> str:
        return self.question[:80]
