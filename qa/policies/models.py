from typing import Self

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from kb.documents.models import KnowledgeBase
from qa.pipeline.gates import Reason
from qa.pipeline.policy import Policy as PolicyValue
from qa.pipeline.policy import RetrievalTiming, Scope


class Policy(models.Model):
    """One version of the thresholds of a knowledge base; immutable (a trigger holds it).

    A change is a new version; exactly one version of a knowledge base is active.
    """

    knowledge_base = models.ForeignKey(
        KnowledgeBase, on_delete=models.PROTECT, related_name="policies"
    )
    name = models.CharField(max_length=100, default="default")
    version = models.PositiveIntegerField(help_text="1-based, within name.")
    is_active = models.BooleanField(default=False)
    # The defaults were chosen on the bundled models and the demonstration questions as a
    # whole: what the knowledge base answers lies at ratios from 0 to 0.84, what it only
    # touches from 0.91 (one at 0.85), what it knows nothing of from 1.24; the same
    # question in other words lies below 0.2, and other questions' words must agree too.
    # Of 52 verdicts behind that alpha, those on right answers are at 0.63 and above (one at
    # 0.41), the others at 0.49 and below (one at 0.92). That is how they were found, not how well they generalise:
    # labelled answers of one's own calibrate better ones.
    alpha = models.FloatField(
        default=0.85,
        validators=[MinValueValidator(0.0), MaxValueValidator(2.0)],
        help_text="Hard refusal unless the least distance / confidence is below it "
        "(Euclidean distance of unit vectors, 0 to 2).",
    )
    alpha_unverified = models.FloatField(
        default=2.0,
        validators=[MinValueValidator(0.0), MaxValueValidator(2.0)],
        help_text="A lower bound than alpha for evidence that nobody verified; anything "
        "above alpha sets none.",
    )
    horizon = models.FloatField(
        default=1.2,
        validators=[MinValueValidator(0.0), MaxValueValidator(2.0)],
        help_text="Distance beyond which an entry counts as unrelated.",
    )
    top_k = models.PositiveSmallIntegerField(
        default=4, validators=[MinValueValidator(1), MaxValueValidator(20)]
    )
    verbatim_distance = models.FloatField(
        default=0.35,
        validators=[MinValueValidator(0.0), MaxValueValidator(2.0)],
        help_text="Largest distance of a word-for-word answer; 0 switches it off.",
    )
    unverified_floor = models.FloatField(
        default=0.75,
        validators=[MinValueValidator(0.01), MaxValueValidator(1.0)],
        help_text="Least confidence of unverified evidence; 1 admits verified only.",
    )
    answer_from_enriched = models.BooleanField(
        default=False,
        help_text="May what a language model proposed be evidence before a curator has "
        "reviewed it? The answer then says so.",
    )
    enriched_floor = models.FloatField(
        default=0.4,
        validators=[MinValueValidator(0.01), MaxValueValidator(1.0)],
        help_text="Least confidence of evidence that a language model proposed and "
        "nobody reviewed.",
    )
    hard_refusal = models.BooleanField(
        default=True,
        help_text="May the distance refuse? If not it is measured, stored and not "
        "enforced (shadow).",
    )
    soft_refusal = models.BooleanField(
        default=True, help_text="May the model's verdict refuse, or is it in shadow?"
    )
    support_check = models.BooleanField(
        default=True,
        help_text="Is an answer refused that its evidence does not carry, or is the "
        "check in shadow?",
    )
    min_verdict = models.FloatField(
        default=0.6,
        validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
        help_text="Least probability of the model's verdict that the evidence answers.",
    )
    abstention = models.BooleanField(
        default=False,
        help_text="May too little confidence refuse, or is it in shadow?",
    )
    min_confidence = models.FloatField(
        default=0.0,
        validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
        help_text="Least confidence of the probe that reads the answer's activations; 0 "
        "lets all pass.",
    )
    min_early_confidence = models.FloatField(
        default=0.0,
        validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
        help_text="Least confidence of the probe that reads question and evidence; below "
        "it nothing is written. 0 lets all pass.",
    )
    min_joint_confidence = models.FloatField(
        default=0.0,
        validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
        help_text="Least confidence of the probe that weighs all signals; 0 lets all "
        "pass.",
    )
    answer_without_probe = models.BooleanField(
        default=True,
        help_text="Is an answer shown whose confidence is enforced and can't be told, "
        "for no probe fits the language model?",
    )
    sources_must_agree = models.BooleanField(
        default=True,
        help_text="Is an answer refused that another entry contradicts, as long as "
        "curators have not settled which is right? Off, it is shown with a notice.",
    )
    reveal_not_entitled = models.BooleanField(
        default=False,
        help_text="May a refusal tell that there is knowledge the asker may not see?",
    )
    refuse_when_stale = models.BooleanField(
        default=False,
        help_text="Refuse everything while the thresholds belong to other models.",
    )
    scope = models.CharField(
        max_length=14,
        choices=[(each.value, each.value) for each in Scope],
        default=Scope.KNOWLEDGE_BASE.value,
        help_text="knowledge_base answers from evidence alone; adaptive also from what "
        "the language model knows by itself, and says that no source carries it.",
    )
    retrieval_timing = models.CharField(
        max_length=15,
        choices=[(each.value, each.value) for each in RetrievalTiming],
        default=RetrievalTiming.ALWAYS.value,
        help_text="When evidence is looked for. All but always need the adaptive scope: "
        "boundary (a probe of the question), history (past questions like it), "
        "log_probability (of the draft), monitored (while it is written).",
    )
    min_known = models.FloatField(
        default=0.95,
        validators=[MinValueValidator(0.0), MaxValueValidator(1.01)],
        help_text="Least sureness at which the language model answers by itself; above "
        "1 it never does. Set it from a risk-coverage curve.",
    )
    steering = models.FloatField(
        default=0.3,
        validators=[MinValueValidator(-20.0), MaxValueValidator(20.0)],
        help_text="How strongly a monitored answer is moved towards honesty: 1 is half of "
        "the way between untruthful and honest, 0 not at all.",
    )
    min_token_confidence = models.FloatField(
        default=0.0,
        validators=[MinValueValidator(-1000.0), MaxValueValidator(1000.0)],
        help_text="Least confidence of a word of a monitored answer; below it evidence is "
        "looked for. 1 is as a confident person, -1 as an unconfident one.",
    )
    rerank = models.BooleanField(
        default=False,
        help_text="Is what was found put in the order in which it helps the model? "
        "Needs a reranker.",
    )
    debias_verdict = models.BooleanField(
        default=False,
        help_text="Is the model's verdict corrected by what it says of past questions "
        "that experts judged?",
    )
    calibrated_embedder = models.CharField(max_length=64, blank=True)
    calibrated_language_model = models.CharField(max_length=200, blank=True)
    calibrated_retrieval = models.CharField(max_length=100, blank=True)
    calibrated_probes = models.TextField(blank=True)
    calibrated_own_knowledge = models.CharField(max_length=200, blank=True)
    is_calibrated = models.BooleanField(default=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="policies",
    )
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

    def as_value(self) -> PolicyValue:
        """Return the frozen value that the pipeline decides by."""
        return PolicyValue(
            name=self.name,
            version=self.version,
            alpha=self.alpha,
            alpha_unverified=self.alpha_unverified,
            horizon=self.horizon,
            top_k=self.top_k,
            verbatim_distance=self.verbatim_distance,
            unverified_floor=self.unverified_floor,
            answer_from_enriched=self.answer_from_enriched,
            enriched_floor=self.enriched_floor,
            hard_refusal=self.hard_refusal,
            soft_refusal=self.soft_refusal,
            support_check=self.support_check,
            min_verdict=self.min_verdict,
            abstention=self.abstention,
            min_confidence=self.min_confidence,
            min_early_confidence=self.min_early_confidence,
            min_joint_confidence=self.min_joint_confidence,
            answer_without_probe=self.answer_without_probe,
            sources_must_agree=self.sources_must_agree,
            reveal_not_entitled=self.reveal_not_entitled,
            refuse_when_stale=self.refuse_when_stale,
            scope=Scope(self.scope),
            retrieval_timing=RetrievalTiming(self.retrieval_timing),
            min_known=self.min_known,
            steering=self.steering,
            min_token_confidence=self.min_token_confidence,
            rerank=self.rerank,
            debias_verdict=self.debias_verdict,
            calibrated_embedder=self.calibrated_embedder,
            calibrated_language_model=self.calibrated_language_model,
            calibrated_retrieval=self.calibrated_retrieval,
            calibrated_probes=self.calibrated_probes,
            calibrated_own_knowledge=self.calibrated_own_knowledge,
            is_calibrated=self.is_calibrated,
        )


class RefusalWording(models.Model):
    """What a refusal says, by knowledge base, language and reason ("" is every reason)."""

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


class PolicyActivationQuerySet(models.QuerySet["PolicyActivation"]):
    """Reads over the history of what decided."""

    def of(self, knowledge_base: KnowledgeBase) -> Self:
        """One knowledge base's history, newest first, with versions and names."""
        rows = self.filter(knowledge_base=knowledge_base)
        return rows.select_related("policy", "replaced", "by")


class PolicyActivation(models.Model):
    """That a version began to decide: append-only (a trigger holds it)."""

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
        help_text="The version that decided until then, if any did.",
    )
    is_rollback = models.BooleanField(
        default=False, help_text="Was it to undo an activation?"
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="policy_activations",
    )
    at = models.DateTimeField(auto_now_add=True)

    objects = PolicyActivationQuerySet.as_manager()

    class Meta:
        ordering = ["-at", "-pk"]

    def __str__(self) -> str:
        return f"{self.policy} from {self.at:%Y-%m-%d %H:%M} on"
