from dataclasses import fields
from enum import StrEnum
from typing import Any, Self

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils.functional import cached_property

from accounts.models import optional_user
from kb.documents.models import KnowledgeBase
from kb.exceptions import KnowledgeBaseArchivedError
from qa.pipeline.gates import Reason
from qa.pipeline.policy import DECLARED, RetrievalTiming, Scope, default
from qa.pipeline.policy import Policy as PolicyValue


def _declared(name: str) -> dict[str, Any]:
    """Return a field's default, validators and help, as declared by the pipeline."""
    declared, value = DECLARED[name], default(name)
    options: dict[str, Any] = {"help_text": declared.help, "default": value}
    if isinstance(value, StrEnum):
        options["default"] = value.value
    if declared.limits:
        low, high = declared.limits
        options["validators"] = [MinValueValidator(low), MaxValueValidator(high)]
    return options


class Policy(models.Model):
    """One version of a knowledge base's thresholds; immutable, enforced by a trigger.

    A change is a new version; exactly one version of a knowledge base is active.
    """

    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.PROTECT, related_name="policies"
    )
    name = models.CharField(max_length=100, default="default")
    version = models.PositiveIntegerField(help_text="1-based, counted per name.")
    is_active = models.BooleanField(default=False)
    # Defaults, ranges and help are declared in qa.pipeline.policy.
    alpha = models.FloatField(**_declared("alpha"))
    alpha_unverified = models.FloatField(**_declared("alpha_unverified"))
    horizon = models.FloatField(**_declared("horizon"))
    top_k = models.PositiveSmallIntegerField(**_declared("top_k"))
    verbatim_distance = models.FloatField(**_declared("verbatim_distance"))
    verification = models.BooleanField(**_declared("verification"))
    min_entry_answer = models.FloatField(**_declared("min_entry_answer"))
    min_answerability = models.FloatField(**_declared("min_answerability"))
    unverified_floor = models.FloatField(**_declared("unverified_floor"))
    answer_from_enriched = models.BooleanField(**_declared("answer_from_enriched"))
    enriched_floor = models.FloatField(**_declared("enriched_floor"))
    hard_refusal = models.BooleanField(**_declared("hard_refusal"))
    soft_refusal = models.BooleanField(**_declared("soft_refusal"))
    support_check = models.BooleanField(**_declared("support_check"))
    min_sentence_support = models.FloatField(**_declared("min_sentence_support"))
    min_verdict = models.FloatField(**_declared("min_verdict"))
    abstention = models.BooleanField(**_declared("abstention"))
    min_confidence = models.FloatField(**_declared("min_confidence"))
    min_early_confidence = models.FloatField(**_declared("min_early_confidence"))
    min_joint_confidence = models.FloatField(**_declared("min_joint_confidence"))
    answer_without_probe = models.BooleanField(**_declared("answer_without_probe"))
    sources_must_agree = models.BooleanField(**_declared("sources_must_agree"))
    reveal_not_entitled = models.BooleanField(**_declared("reveal_not_entitled"))
    refuse_when_stale = models.BooleanField(**_declared("refuse_when_stale"))
    completeness_counts = models.BooleanField(**_declared("completeness_counts"))
    marked_evidence_counts = models.BooleanField(**_declared("marked_evidence_counts"))
    scope = models.CharField(
        max_length=14,
        choices=[(each.value, each.value) for each in Scope],
        **_declared("scope"),
    )
    retrieval_timing = models.CharField(
        max_length=15,
        choices=[(each.value, each.value) for each in RetrievalTiming],
        **_declared("retrieval_timing"),
    )
    own_knowledge_first = models.BooleanField(**_declared("own_knowledge_first"))
    min_known = models.FloatField(**_declared("min_known"))
    steering = models.FloatField(**_declared("steering"))
    min_token_confidence = models.FloatField(**_declared("min_token_confidence"))
    rerank = models.BooleanField(**_declared("rerank"))
    debias_verdict = models.BooleanField(**_declared("debias_verdict"))
    test_cases_must_pass = models.BooleanField(
        **_declared("test_cases_must_pass"), db_default=False
    )
    calibrated_embedder = models.CharField(max_length=64, blank=True)
    calibrated_language_model = models.CharField(max_length=200, blank=True)
    calibrated_retrieval = models.CharField(max_length=100, blank=True)
    calibrated_probes = models.TextField(blank=True)
    calibrated_own_knowledge = models.CharField(max_length=200, blank=True)
    is_calibrated = models.BooleanField(default=False)
    created_by = optional_user("policies")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "policies"
        ordering = ["knowledge_base", "name", "-version"]
        constraints = [
            models.UniqueConstraint(
                fields=["knowledge_base", "name", "version"],
                name="policy_version_unique",
            ),
            models.UniqueConstraint(
                fields=["knowledge_base"],
                condition=Q(is_active=True),
                name="policy_one_active",
            ),
            models.CheckConstraint(
                condition=Q(scope="knowledge_base", retrieval_timing="always")
                | (Q(scope="adaptive") & ~Q(retrieval_timing="always")),
                name="policy_scope_fits_timing",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"

    @cached_property
    def is_self_calibrated(self) -> bool:
        """Whether the knowledge base's own questions chose its thresholds.

        A query, unless `self_calibrated` was read with the row as `from_own_questions`.
        False for an unsaved version, as in the playground.
        """
        read: bool | None = getattr(self, "from_own_questions", None)
        if read is None:
            return bool(self.pk) and self.self_calibrations.exists()
        return read

    def as_value(self) -> PolicyValue:
        """Return the frozen value that the pipeline decides by."""
        values = {each.name: getattr(self, each.name) for each in fields(PolicyValue)}
        values["scope"] = Scope(self.scope)
        values["retrieval_timing"] = RetrievalTiming(self.retrieval_timing)
        return PolicyValue(**values)


def self_calibrated(policy: str = "pk") -> Exists:
    """Return, for a query, whether own questions chose the thresholds of `policy`."""
    related: Any = Policy._meta.get_field("self_calibrations").related_model
    return Exists(related.objects.filter(policy=OuterRef(policy)))


class RefusalWording(models.Model):
    """A knowledge base's wording of refusals by language and reason ("" for all)."""

    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.CASCADE, related_name="refusal_wordings"
    )
    language = models.CharField(max_length=2, choices=KnowledgeBase.Language.choices)
    reason = models.CharField(
        max_length=20, blank=True, choices=[(r.value, r.value) for r in Reason]
    )
    text = models.TextField(max_length=1000)

    class Meta:
        ordering = ["knowledge_base", "language", "reason"]
        constraints = [
            models.UniqueConstraint(
                fields=["knowledge_base", "language", "reason"],
                name="refusal_wording_unique",
            )
        ]

    def __str__(self) -> str:
        return self.text[:80]

    def clean(self) -> None:
        bases = KnowledgeBase.objects.filter(
            Q(pk=self.knowledge_base_id) | Q(refusal_wordings=self.pk)
        )
        try:
            for base in bases:
                base.check_in_use()
        except KnowledgeBaseArchivedError as error:
            raise ValidationError(str(error)) from error


class PolicyActivationQuerySet(models.QuerySet["PolicyActivation"]):
    def of(self, knowledge_base: KnowledgeBase) -> Self:
        """Return a knowledge base's history, newest first, with versions and users."""
        rows = self.filter(knowledge_base=knowledge_base)
        return rows.select_related("policy", "replaced", "by")


class PolicyActivation(models.Model):
    """The activation of a version; append-only, enforced by a trigger."""

    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.PROTECT, related_name="policy_activations"
    )
    policy = models.ForeignKey(
        Policy, on_delete=models.PROTECT, related_name="activations"
    )
    replaced = models.ForeignKey(
        Policy,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        help_text="The previously active version, if any.",
    )
    is_rollback = models.BooleanField(
        default=False, help_text="Whether it returned to an earlier version."
    )
    reason = models.TextField(
        blank=True,
        default="",
        db_default="",
        max_length=1000,
        help_text="Why it was activated although test cases failed or were not asked.",
    )
    failed_cases = models.PositiveIntegerField(
        null=True,
        help_text="Number of test cases that failed; empty if they were not asked.",
    )
    by = optional_user("policy_activations")
    at = models.DateTimeField(auto_now_add=True)

    objects = PolicyActivationQuerySet.as_manager()

    class Meta:
        ordering = ["-at", "-pk"]

    def __str__(self) -> str:
        return f"{self.policy} from {self.at:%Y-%m-%d %H:%M} on"
