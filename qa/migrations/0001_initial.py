import uuid
from pathlib import Path

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.core.validators
import django.db.models.deletion
import pgvector.django.vector
from django.conf import settings
from django.db import migrations, models

RULES, AUDIT = (
    Path(__file__).with_name(name).read_text() for name in ("rules.sql", "audit.sql")
)
UNDO_RULES = """
DROP FUNCTION nescio_user, qa_note_reviewed_day, qa_note_changed_votes,
    qa_note_moved_answers, qa_note_changed_answers, qa_note_changed_days,
    qa_note_vote_change, qa_refuse_activation_change, qa_refuse_policy_update CASCADE;
"""
UNDO_AUDIT = "DROP FUNCTION qa_audit_service, qa_audit_assignee CASCADE;"


class Migration(migrations.Migration):
    initial = True

    # A database that has all of these has this one.
    replaces = [
        ("qa", "0002_entry_gate"),
        ("qa", "0003_self_calibration"),
        ("qa", "0004_audit_policies"),
        ("qa", "0005_sentence_support"),
        ("qa", "0006_votes_name_the_entry"),
        ("qa", "0007_refusals_by_shown_reason"),
        ("qa", "0008_deciding_by_a_claim"),
        ("qa", "0009_own_knowledge_first"),
        ("qa", "0010_reports_by_shown_reason"),
        ("qa", "0011_bounds_over_groups"),
        ("qa", "0012_labelled_calibration"),
        ("qa", "0013_entry_thresholds"),
        ("qa", "0014_choice_among_entries"),
        ("qa", "0015_entries_voted_down"),
        ("qa", "0016_probes_bring_minimums"),
        ("qa", "0017_strata_by_certainty"),
        ("qa", "0018_what_reviews_count"),
        ("qa", "0019_notices_leave_by_events"),
        ("qa", "0020_erased_answers"),
        ("qa", "0021_conversations"),
        ("qa", "0022_asked_for_others"),
        ("qa", "0023_saved_cases"),
        ("qa", "0024_inbox"),
        ("qa", "0025_answers_keep_their_scope"),
        ("qa", "0026_lower_entry_thresholds"),
        ("qa", "0027_answers_by_base"),
        ("qa", "0028_answers_without_a_second_index"),
        ("qa", "0029_answer_refusal_language"),
        ("qa", "0030_shadows_and_models_by_day"),
        ("qa", "0031_reviews_change_days"),
        ("qa", "0032_notices_of_flags"),
        ("qa", "0033_entry_thresholds_of_the_second_fit"),
        ("qa", "0034_verified_evidence_alone"),
        ("qa", "0035_typed_words"),
        ("qa", "0036_wider_horizon"),
    ]

    dependencies = [
        ("accounts", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("jobs", "0001_initial"),
        ("kb", "0001_initial"),
        ("probes", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Policy",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("name", models.CharField(default="default", max_length=100)),
                (
                    "version",
                    models.PositiveIntegerField(help_text="1-based, counted per name."),
                ),
                ("is_active", models.BooleanField(default=False)),
                (
                    "alpha",
                    models.FloatField(
                        default=0.85,
                        help_text="A question is refused unless the smallest distance / confidence is below this value (Euclidean distance of unit vectors, 0 to 2).",
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(2.0),
                        ],
                    ),
                ),
                (
                    "alpha_unverified",
                    models.FloatField(
                        default=2.0,
                        help_text="A stricter maximum distance for unverified evidence; a value above alpha has no effect.",
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(2.0),
                        ],
                    ),
                ),
                (
                    "horizon",
                    models.FloatField(
                        default=1.25,
                        help_text="Distance above which an entry counts as unrelated.",
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(2.0),
                        ],
                    ),
                ),
                (
                    "top_k",
                    models.PositiveSmallIntegerField(
                        default=4,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(20),
                        ],
                    ),
                ),
                (
                    "verbatim_distance",
                    models.FloatField(
                        default=0.35,
                        help_text="Maximum distance of a word-for-word answer; 0 switches it off.",
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(2.0),
                        ],
                    ),
                ),
                (
                    "unverified_floor",
                    models.FloatField(
                        default=1.0,
                        help_text="Minimum confidence of unverified evidence; 1 admits verified evidence only.",
                        validators=[
                            django.core.validators.MinValueValidator(0.01),
                            django.core.validators.MaxValueValidator(1.0),
                        ],
                    ),
                ),
                (
                    "answer_from_enriched",
                    models.BooleanField(
                        default=False,
                        help_text="Use a language model's proposals as evidence before a curator has reviewed them; the answer then says so.",
                    ),
                ),
                (
                    "enriched_floor",
                    models.FloatField(
                        default=0.4,
                        help_text="Minimum confidence of evidence that a language model proposed and nobody has reviewed.",
                        validators=[
                            django.core.validators.MinValueValidator(0.01),
                            django.core.validators.MaxValueValidator(1.0),
                        ],
                    ),
                ),
                (
                    "hard_refusal",
                    models.BooleanField(
                        default=True,
                        help_text="Refuse by distance. Off: measure only (shadow).",
                    ),
                ),
                (
                    "soft_refusal",
                    models.BooleanField(
                        default=True,
                        help_text="Refuse by the model's verdict. Off: measure only (shadow).",
                    ),
                ),
                (
                    "support_check",
                    models.BooleanField(
                        default=True,
                        help_text="Refuse answers that their evidence does not support. Off: measure only.",
                    ),
                ),
                (
                    "min_verdict",
                    models.FloatField(
                        default=0.6,
                        help_text="Minimum probability, by the model's verdict, that the evidence answers the question.",
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.0),
                        ],
                    ),
                ),
                (
                    "abstention",
                    models.BooleanField(
                        default=False,
                        help_text="Refuse by low confidence. Off: measure only (shadow).",
                    ),
                ),
                (
                    "min_confidence",
                    models.FloatField(
                        default=0.0,
                        help_text="Minimum confidence of the probe that reads the answer's activations; 0 lets all pass.",
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.0),
                        ],
                    ),
                ),
                (
                    "min_early_confidence",
                    models.FloatField(
                        default=0.0,
                        help_text="Minimum confidence of the probe that reads question and evidence; below it no answer is generated. 0 lets all pass.",
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.0),
                        ],
                    ),
                ),
                (
                    "min_joint_confidence",
                    models.FloatField(
                        default=0.0,
                        help_text="Minimum confidence of the probe that combines all signals; 0 lets all pass.",
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.0),
                        ],
                    ),
                ),
                (
                    "answer_without_probe",
                    models.BooleanField(
                        default=True,
                        help_text="Show answers even if a confidence is enforced and no probe fits the language model.",
                    ),
                ),
                (
                    "sources_must_agree",
                    models.BooleanField(
                        default=True,
                        help_text="Refuse answers that another entry contradicts, until curators resolve the conflict. Off: show them with a notice.",
                    ),
                ),
                (
                    "reveal_not_entitled",
                    models.BooleanField(
                        default=False,
                        help_text="Let a refusal mention that there is knowledge which the asker may not see.",
                    ),
                ),
                (
                    "refuse_when_stale",
                    models.BooleanField(
                        default=False,
                        help_text="Refuse everything while the thresholds belong to other models.",
                    ),
                ),
                (
                    "scope",
                    models.CharField(
                        choices=[
                            ("knowledge_base", "knowledge_base"),
                            ("adaptive", "adaptive"),
                        ],
                        default="knowledge_base",
                        help_text="knowledge_base: answer from evidence alone. adaptive: if no entry covers the question, also answer from the language model's own knowledge, labelled as unsourced.",
                        max_length=14,
                    ),
                ),
                (
                    "retrieval_timing",
                    models.CharField(
                        choices=[
                            ("always", "always"),
                            ("boundary", "boundary"),
                            ("history", "history"),
                            ("log_probability", "log_probability"),
                            ("monitored", "monitored"),
                        ],
                        default="always",
                        help_text="When evidence is retrieved. All but always need the adaptive scope: boundary (a probe of the question), history (similar past questions), log_probability (of the draft), monitored (during generation).",
                        max_length=15,
                    ),
                ),
                (
                    "min_known",
                    models.FloatField(
                        default=0.95,
                        help_text="Minimum known probability at which the language model answers from its own knowledge; above 1 it never does. Set it from a risk-coverage curve.",
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.01),
                        ],
                    ),
                ),
                (
                    "steering",
                    models.FloatField(
                        default=0.3,
                        help_text="Steering strength of a monitored answer towards honesty: 1 is halfway between untruthful and honest, 0 is none.",
                        validators=[
                            django.core.validators.MinValueValidator(-20.0),
                            django.core.validators.MaxValueValidator(20.0),
                        ],
                    ),
                ),
                (
                    "min_token_confidence",
                    models.FloatField(
                        default=0.0,
                        help_text="Minimum confidence of a word of a monitored answer; below it evidence is retrieved. 1 is the level of a confident person, -1 of an unconfident one.",
                        validators=[
                            django.core.validators.MinValueValidator(-1000.0),
                            django.core.validators.MaxValueValidator(1000.0),
                        ],
                    ),
                ),
                (
                    "rerank",
                    models.BooleanField(
                        default=False,
                        help_text="Order the retrieved evidence by how much it helps the model. Needs a reranker.",
                    ),
                ),
                (
                    "debias_verdict",
                    models.BooleanField(
                        default=False,
                        help_text="Correct the model's verdict by what it says about past questions that experts judged.",
                    ),
                ),
                ("calibrated_embedder", models.CharField(blank=True, max_length=64)),
                (
                    "calibrated_language_model",
                    models.CharField(blank=True, max_length=200),
                ),
                ("calibrated_retrieval", models.CharField(blank=True, max_length=100)),
                ("calibrated_probes", models.TextField(blank=True)),
                (
                    "calibrated_own_knowledge",
                    models.CharField(blank=True, max_length=200),
                ),
                ("is_calibrated", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="policies",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="policies",
                        to="kb.knowledgebase",
                    ),
                ),
                (
                    "min_answerability",
                    models.FloatField(
                        default=0.75,
                        help_text="Minimum probability, by the verifier, that any entry answers the question; below it the language model is not asked. 0 lets all pass.",
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.0),
                        ],
                    ),
                ),
                (
                    "min_entry_answer",
                    models.FloatField(
                        default=0.75,
                        help_text="Minimum probability, by the verifier, at which a verified entry, or two that are about equally likely, are shown whole as the answer; above 1 none is shown.",
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.01),
                        ],
                    ),
                ),
                (
                    "verification",
                    models.BooleanField(
                        default=True,
                        help_text="Let the verifier judge whether an entry answers the question, and show a verified entry that does as the answer. Off: measure only.",
                    ),
                ),
                (
                    "min_sentence_support",
                    models.FloatField(
                        default=0.3,
                        help_text="Minimum probability, by the verifier, that a cited entry supports each sentence of an answer; a sentence that the entry contains word for word always passes.",
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.0),
                        ],
                    ),
                ),
                (
                    "own_knowledge_first",
                    models.BooleanField(
                        default=False,
                        help_text="Ask the language model for its own knowledge before evidence is retrieved, which saves the search: its answer then takes precedence over a verified entry. Off: only if no entry covers the question.",
                    ),
                ),
                (
                    "completeness_counts",
                    models.BooleanField(
                        default=False,
                        help_text="A reviewed answer that is not complete counts as a false one. Off: correct and true to its evidence is enough.",
                    ),
                ),
                (
                    "marked_evidence_counts",
                    models.BooleanField(
                        default=False,
                        help_text="A reviewed answer that cites none of the evidence that the expert marked counts as a false one. Off: the marks only record which entries answer the question.",
                    ),
                ),
                (
                    "test_cases_must_pass",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Every saved test case of the knowledge base must pass before this version is activated, and before it is replaced while active. Off: giving a reason is enough.",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "policies",
                "ordering": ["knowledge_base", "name", "-version"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("knowledge_base", "name", "version"),
                        name="policy_version_unique",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("is_active", True)),
                        fields=("knowledge_base",),
                        name="policy_one_active",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("retrieval_timing", "always"),
                                ("scope", "knowledge_base"),
                            ),
                            models.Q(
                                ("scope", "adaptive"),
                                models.Q(("retrieval_timing", "always"), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="policy_scope_fits_timing",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Answer",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "channel",
                    models.CharField(
                        choices=[
                            ("api", "REST"),
                            ("page", "ask page"),
                            ("command", "command line"),
                            ("evaluation", "evaluation"),
                            ("repeat", "asked again automatically"),
                        ],
                        max_length=10,
                    ),
                ),
                ("question", models.TextField()),
                ("language", models.CharField(default="en", max_length=2)),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("answered", "answered"),
                            ("refused", "refused"),
                            ("failed", "failed"),
                        ],
                        default="pending",
                        max_length=8,
                    ),
                ),
                (
                    "gate",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("boundary", "boundary"),
                            ("verbatim", "verbatim"),
                            ("hard_refusal", "hard_refusal"),
                            ("entry", "entry"),
                            ("soft_refusal", "soft_refusal"),
                            ("abstention", "abstention"),
                            ("agreement", "agreement"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("nothing_known", "nothing_known"),
                            ("too_far", "too_far"),
                            ("unverified_only", "unverified_only"),
                            ("expired_only", "expired_only"),
                            ("not_entitled", "not_entitled"),
                            ("not_answered", "not_answered"),
                            ("model_declined", "model_declined"),
                            ("malformed_output", "malformed_output"),
                            ("unsupported", "unsupported"),
                            ("low_confidence", "low_confidence"),
                            ("no_probe", "no_probe"),
                            ("sources_disagree", "sources_disagree"),
                            ("policy_stale", "policy_stale"),
                        ],
                        max_length=20,
                    ),
                ),
                (
                    "shown_reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("nothing_known", "nothing_known"),
                            ("too_far", "too_far"),
                            ("unverified_only", "unverified_only"),
                            ("expired_only", "expired_only"),
                            ("not_entitled", "not_entitled"),
                            ("not_answered", "not_answered"),
                            ("model_declined", "model_declined"),
                            ("malformed_output", "malformed_output"),
                            ("unsupported", "unsupported"),
                            ("low_confidence", "low_confidence"),
                            ("no_probe", "no_probe"),
                            ("sources_disagree", "sources_disagree"),
                            ("policy_stale", "policy_stale"),
                        ],
                        max_length=20,
                    ),
                ),
                (
                    "text",
                    models.TextField(blank=True, help_text="The text that was shown."),
                ),
                ("reasoning", models.TextField(blank=True)),
                (
                    "calibration",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("hand_set", "hand_set"),
                            ("current", "current"),
                            ("stale", "stale"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "signals",
                    models.JSONField(
                        default=list,
                        help_text="[{gate, name, value, threshold, passed}]",
                    ),
                ),
                (
                    "milliseconds",
                    models.JSONField(default=dict, help_text="{stage: milliseconds}"),
                ),
                (
                    "generation",
                    models.JSONField(
                        default=dict, help_text="What the language model returned."
                    ),
                ),
                (
                    "confidence",
                    models.JSONField(
                        default=dict,
                        help_text="{along: confidence after each generated token, missing: why there is none}; the final values are in the signals.",
                    ),
                ),
                (
                    "contradictions",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Contradictions in its evidence: [{conflict_id, entries, quotes}]; shown only to users who may see both entries.",
                    ),
                ),
                (
                    "boundary",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="With the adaptive scope: {fingerprint, examples: ids of the past questions used, segments: the monitored sentences}.",
                    ),
                ),
                ("embedder", models.CharField(blank=True, max_length=64)),
                ("language_model", models.CharField(blank=True, max_length=200)),
                (
                    "probes",
                    models.TextField(
                        blank=True,
                        help_text="Fingerprints of the active probes, if the model ran.",
                    ),
                ),
                ("error", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                (
                    "asker",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="answers",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="answers",
                        to="kb.knowledgebase",
                    ),
                ),
                (
                    "line_of_business",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        limit_choices_to={"facet": "line_of_business"},
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="answers_of_line_of_business",
                        to="kb.tag",
                    ),
                ),
                (
                    "product_line",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        limit_choices_to={"facet": "product_line"},
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="answers_of_product_line",
                        to="kb.tag",
                    ),
                ),
                (
                    "policy",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="answers",
                        to="qa.policy",
                    ),
                ),
                (
                    "claimed_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="When a process claimed the question, so that no other decides it.",
                        null=True,
                    ),
                ),
                (
                    "erased_at",
                    models.DateTimeField(
                        blank=True, help_text="When its words were erased.", null=True
                    ),
                ),
                (
                    "conversation",
                    models.UUIDField(
                        blank=True,
                        help_text="Id of the conversation's first answer; empty for a standalone question.",
                        null=True,
                    ),
                ),
                (
                    "typed",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="What was typed, if it was asked as a different question: a follow-up, a long message, or words with synonyms.",
                    ),
                ),
                (
                    "service",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="The service account that asked on the asker's behalf; empty: they asked themselves.",
                        max_length=150,
                    ),
                ),
                (
                    "scope",
                    models.JSONField(
                        blank=True,
                        db_default=models.Value({}, models.JSONField()),
                        default=dict,
                        help_text="{at, audiences}: the time as of which, and the audiences for which, it was decided; empty for answers older than this field.",
                    ),
                ),
                (
                    "refusal_language",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Language of the refusal, if it differs from the answer's.",
                        max_length=2,
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at"],
                "indexes": [
                    models.Index(
                        fields=["asker", "-created_at"], name="answer_by_asker"
                    ),
                    models.Index(fields=["-created_at"], name="answer_by_time"),
                    models.Index(
                        fields=["outcome", "-created_at"], name="answer_by_outcome"
                    ),
                    models.Index(fields=["gate", "-created_at"], name="answer_by_gate"),
                    django.contrib.postgres.indexes.GinIndex(
                        django.contrib.postgres.search.SearchVector(
                            "question", config="simple"
                        ),
                        name="answer_question_words",
                    ),
                    django.contrib.postgres.indexes.GinIndex(
                        django.contrib.postgres.search.SearchVector(
                            "text", config="simple"
                        ),
                        name="answer_text_words",
                    ),
                    models.Index(
                        condition=models.Q(("outcome", "pending")),
                        fields=["created_at"],
                        name="answer_pending",
                    ),
                    models.Index(
                        condition=models.Q(("outcome", "refused")),
                        fields=["decided_at"],
                        name="answer_refused",
                    ),
                    models.Index(
                        condition=models.Q(("product_line__isnull", False)),
                        fields=["product_line", "-created_at"],
                        name="answer_by_product_line",
                    ),
                    models.Index(
                        condition=models.Q(("line_of_business__isnull", False)),
                        fields=["line_of_business", "-created_at"],
                        name="answer_by_line_of_business",
                    ),
                    models.Index(
                        fields=["shown_reason", "-created_at"],
                        name="answer_by_shown_reason",
                    ),
                    models.Index(
                        condition=models.Q(("conversation__isnull", False)),
                        fields=["conversation", "created_at"],
                        name="answer_by_conversation",
                    ),
                    models.Index(
                        fields=["knowledge_base", "-created_at"],
                        include=("channel", "outcome"),
                        name="answer_by_base",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("outcome", "refused"),
                                models.Q(("reason", ""), _negated=True),
                                models.Q(("gate", ""), _negated=True),
                            ),
                            models.Q(
                                models.Q(("outcome", "refused"), _negated=True),
                                ("reason", ""),
                            ),
                            _connector="OR",
                        ),
                        name="answer_refusal_has_reason",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="EvaluationRun",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("suite", models.CharField(max_length=60)),
                (
                    "key",
                    models.CharField(
                        help_text="Digest of the run's inputs and models; a run with the same key continues.",
                        max_length=64,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("running", "running"), ("finished", "finished")],
                        default="running",
                        max_length=8,
                    ),
                ),
                (
                    "parameters",
                    models.JSONField(
                        default=dict,
                        help_text="Suite, data digest, limit, seed, gold ratio, shadow.",
                    ),
                ),
                (
                    "protocol",
                    models.TextField(
                        blank=True, help_text="Questions, knowledge and known leakage."
                    ),
                ),
                (
                    "total",
                    models.PositiveIntegerField(help_text="Total number of questions."),
                ),
                ("embedder", models.CharField(blank=True, max_length=64)),
                ("language_model", models.CharField(blank=True, max_length=200)),
                ("retrieval", models.CharField(blank=True, max_length=100)),
                (
                    "probes",
                    models.TextField(
                        blank=True,
                        help_text="Fingerprints of the active probes, separated by spaces.",
                    ),
                ),
                ("report", models.JSONField(default=dict)),
                ("started_at", models.DateTimeField(auto_now_add=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="evaluations",
                        to="kb.knowledgebase",
                    ),
                ),
                (
                    "started_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="evaluations",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "policy",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="evaluations",
                        to="qa.policy",
                    ),
                ),
            ],
            options={
                "ordering": ["-started_at"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "running")),
                        fields=("key",),
                        name="evaluation_run_one_running",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Certificate",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("method", models.CharField(max_length=40)),
                (
                    "epsilon",
                    models.FloatField(
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.0),
                        ]
                    ),
                ),
                (
                    "delta",
                    models.FloatField(
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.0),
                        ]
                    ),
                ),
                (
                    "labelled",
                    models.PositiveIntegerField(
                        help_text="Labelled answers in the test part."
                    ),
                ),
                (
                    "shown",
                    models.PositiveIntegerField(
                        help_text="Shown answers in the test part."
                    ),
                ),
                (
                    "wrong",
                    models.PositiveIntegerField(
                        help_text="Wrong answers among those shown."
                    ),
                ),
                (
                    "bound",
                    models.FloatField(
                        help_text="Upper bound on the risk, at 1 - delta.",
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.0),
                        ],
                    ),
                ),
                (
                    "coverage",
                    models.FloatField(
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.0),
                        ]
                    ),
                ),
                (
                    "learnt",
                    models.PositiveIntegerField(
                        default=0, help_text="Labelled answers in the learning part."
                    ),
                ),
                (
                    "groups",
                    models.PositiveIntegerField(
                        default=0, help_text="Groups (articles) in the test part."
                    ),
                ),
                (
                    "group_bound",
                    models.FloatField(
                        help_text="Upper bound on the risk over groups; null if given before it was held.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.0),
                        ],
                    ),
                ),
                (
                    "warnings",
                    models.JSONField(
                        default=list, help_text="Warnings, one sentence each."
                    ),
                ),
                ("thresholds", models.JSONField(default=dict)),
                ("labels_sha256", models.CharField(max_length=64)),
                ("labels_source", models.CharField(max_length=200)),
                (
                    "signal_quantiles",
                    models.JSONField(
                        default=dict,
                        help_text="{signal: quantiles on the labelled answers}, the reference for drift.",
                    ),
                ),
                ("embedder", models.CharField(max_length=64)),
                ("language_model", models.CharField(blank=True, max_length=200)),
                ("retrieval", models.CharField(max_length=100)),
                (
                    "probes",
                    models.TextField(
                        blank=True,
                        help_text="Fingerprints of the probes that measured the labelled answers' confidences.",
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "run",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="certificates",
                        to="qa.evaluationrun",
                    ),
                ),
                (
                    "policy",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="certificate",
                        to="qa.policy",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at"],
            },
        ),
        migrations.CreateModel(
            name="ChangedDay",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("day", models.DateField()),
            ],
        ),
        migrations.CreateModel(
            name="CountedDay",
            fields=[
                ("day", models.DateField(primary_key=True, serialize=False)),
                ("counted_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="GapCursor",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "refused_to",
                    models.DateTimeField(
                        help_text="Refusals up to this time are in gaps.", null=True
                    ),
                ),
                (
                    "voted_to",
                    models.DateTimeField(
                        help_text="Votes up to this time are in gaps.", null=True
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="UseCursor",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "counted_to",
                    models.BigIntegerField(
                        default=0, help_text="Evidence up to this id is counted."
                    ),
                ),
                (
                    "noted_to",
                    models.BigIntegerField(
                        default=0, help_text="The largest id at the last run."
                    ),
                ),
                (
                    "noted_before",
                    models.BigIntegerField(
                        help_text="A later transaction: when all before it have ended, no further id up to `noted_to` can appear.",
                        null=True,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="DriftReading",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "answers",
                    models.PositiveIntegerField(
                        help_text="Live answers that were compared."
                    ),
                ),
                (
                    "first_at",
                    models.DateTimeField(
                        help_text="When the oldest was asked.", null=True
                    ),
                ),
                (
                    "last_at",
                    models.DateTimeField(
                        help_text="When the newest was asked.", null=True
                    ),
                ),
                (
                    "signals",
                    models.JSONField(
                        default=dict,
                        help_text="{signal: reference and live counts, Kolmogorov-Smirnov distance, population stability index, p-values, has_drifted}; empty where too few.",
                    ),
                ),
                ("has_drifted", models.BooleanField()),
                ("checked_at", models.DateTimeField(auto_now_add=True)),
                (
                    "certificate",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="drift_readings",
                        to="qa.certificate",
                    ),
                ),
            ],
            options={
                "ordering": ["-checked_at", "-pk"],
            },
        ),
        migrations.CreateModel(
            name="Escalation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("note", models.TextField(blank=True, max_length=2000)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "waiting"),
                            ("answered", "answered"),
                            ("closed", "closed"),
                        ],
                        default="open",
                        max_length=8,
                    ),
                ),
                (
                    "reply",
                    models.TextField(
                        blank=True,
                        help_text="The answer, or why there is none.",
                        max_length=8000,
                    ),
                ),
                ("replied_at", models.DateTimeField(null=True)),
                (
                    "read_at",
                    models.DateTimeField(
                        help_text="When the asker opened the reply.", null=True
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "answer",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="escalation",
                        to="qa.answer",
                    ),
                ),
                (
                    "assignee",
                    models.ForeignKey(
                        blank=True,
                        help_text="The expert who works on it.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="taken_escalations",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "entry",
                    models.ForeignKey(
                        help_text="The entry that was made from the reply.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="escalations",
                        to="kb.entry",
                    ),
                ),
                (
                    "raised_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="escalations",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "replied_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="replied_escalations",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
                "indexes": [
                    models.Index(
                        fields=["-created_at", "-id"], name="escalation_newest"
                    ),
                    models.Index(
                        fields=["-state", "created_at", "-id"], name="escalation_queue"
                    ),
                    models.Index(
                        condition=models.Q(("state", "open")),
                        fields=["created_at"],
                        name="escalation_waiting",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("read_at__isnull", True), ("replied_at__isnull", False)
                        ),
                        fields=["raised_by"],
                        name="escalation_unread",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("replied_at__isnull", True),
                                ("reply", ""),
                                ("state", "open"),
                            ),
                            models.Q(
                                models.Q(("state", "open"), _negated=True),
                                ("replied_at__isnull", False),
                                models.Q(("reply", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="escalation_reply_ends_it",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="EvaluationResult",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("case_id", models.CharField(max_length=200)),
                (
                    "group",
                    models.CharField(
                        blank=True,
                        help_text="Unit that resampling keeps together, such as an article or a category.",
                        max_length=200,
                    ),
                ),
                (
                    "is_answerable",
                    models.BooleanField(
                        help_text="Whether it should be answered; empty for multiple choice.",
                        null=True,
                    ),
                ),
                (
                    "is_answered",
                    models.BooleanField(
                        help_text="Whether the run's own policy answered it."
                    ),
                ),
                ("gate", models.CharField(blank=True, max_length=12)),
                ("reason", models.CharField(blank=True, max_length=20)),
                (
                    "is_correct",
                    models.BooleanField(
                        help_text="Whether the draft is right, even if it was not shown; empty if there is no draft.",
                        null=True,
                    ),
                ),
                ("signals", models.JSONField(default=dict, help_text="{name: value}")),
                (
                    "measures",
                    models.JSONField(
                        default=dict,
                        help_text="{name: number}: f1, exact_match, rouge_l, rank, ...",
                    ),
                ),
                (
                    "milliseconds",
                    models.FloatField(help_text="Time of the whole question."),
                ),
                (
                    "model_milliseconds",
                    models.FloatField(
                        default=0.0, help_text="Time in the language model."
                    ),
                ),
                (
                    "answer",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="evaluations",
                        to="qa.answer",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="results",
                        to="qa.evaluationrun",
                    ),
                ),
            ],
            options={
                "ordering": ["run", "pk"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("run", "case_id"), name="evaluation_result_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Gap",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "question",
                    models.TextField(
                        help_text="The question nearest to the centroid when the gap was made."
                    ),
                ),
                (
                    "vector",
                    pgvector.django.vector.VectorField(
                        help_text="Centroid: mean direction, unit length."
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "open"),
                            ("drafted", "waiting for review"),
                            ("filled", "filled"),
                            ("dismissed", "dismissed"),
                        ],
                        default="open",
                        max_length=9,
                    ),
                ),
                (
                    "proposing_job_id",
                    models.UUIDField(
                        help_text="The enrichment job that proposes entries for it.",
                        null=True,
                    ),
                ),
                (
                    "reason",
                    models.TextField(
                        blank=True, help_text="Why it was dismissed.", max_length=2000
                    ),
                ),
                ("questions", models.PositiveIntegerField(default=0)),
                ("askers", models.PositiveIntegerField(default=0)),
                ("first_seen", models.DateTimeField()),
                ("last_seen", models.DateTimeField()),
                (
                    "impact_score",
                    models.FloatField(
                        default=0.0,
                        help_text="Sort key by impact, valid at any time; `impact` gives a readable number.",
                    ),
                ),
                (
                    "drafted_at",
                    models.DateTimeField(
                        help_text="When an entry was drafted; when it is verified, the questions are asked again.",
                        null=True,
                    ),
                ),
                (
                    "asked_again_at",
                    models.DateTimeField(
                        help_text="When its questions were last asked again.", null=True
                    ),
                ),
                ("closed_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "embedding_model",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="kb.embeddingmodel",
                    ),
                ),
                (
                    "entry",
                    models.ForeignKey(
                        help_text="The entry that fills it, once verified.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="gaps",
                        to="kb.entry",
                    ),
                ),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="gaps",
                        to="kb.knowledgebase",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        help_text="The expert who works on it.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="gaps",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-impact_score", "-pk"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ["open", "drafted"])),
                        fields=["-impact_score", "-id"],
                        name="gap_open_ranked",
                    ),
                    models.Index(
                        fields=["state", "-impact_score", "-id"], name="gap_ranked"
                    ),
                    models.Index(
                        condition=models.Q(("state", "drafted")),
                        fields=["entry"],
                        name="gap_drafted",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("closed_at__isnull", True),
                                ("state__in", ["open", "drafted"]),
                            ),
                            models.Q(
                                ("closed_at__isnull", False),
                                ("state__in", ["filled", "dismissed"]),
                            ),
                            _connector="OR",
                        ),
                        name="gap_closed_has_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "dismissed"), _negated=True),
                            models.Q(("reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="gap_dismissed_has_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "drafted"), _negated=True),
                            ("drafted_at__isnull", False),
                            _connector="OR",
                        ),
                        name="gap_drafted_has_time",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="GapQuestion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "why",
                    models.CharField(
                        choices=[("refused", "refused"), ("voted_down", "voted down")],
                        max_length=10,
                    ),
                ),
                (
                    "distance",
                    models.FloatField(
                        help_text="Distance to the centroid when it joined; Euclidean, unit vectors."
                    ),
                ),
                ("asked_at", models.DateTimeField()),
                (
                    "answer",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="gap_question",
                        to="qa.answer",
                    ),
                ),
                (
                    "asker",
                    models.ForeignKey(
                        help_text="Copy of the answer's asker, so that askers are counted without a join.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "gap",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="members",
                        to="qa.gap",
                    ),
                ),
            ],
            options={
                "ordering": ["gap", "-asked_at", "-pk"],
                "indexes": [
                    models.Index(
                        fields=["gap", "-asked_at"], name="gap_question_by_gap"
                    ),
                    models.Index(
                        condition=models.Q(("why", "voted_down")),
                        fields=["answer"],
                        name="gap_question_voted_down",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PolicyActivation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "is_rollback",
                    models.BooleanField(
                        default=False,
                        help_text="Whether it returned to an earlier version.",
                    ),
                ),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="policy_activations",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="policy_activations",
                        to="kb.knowledgebase",
                    ),
                ),
                (
                    "policy",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="activations",
                        to="qa.policy",
                    ),
                ),
                (
                    "replaced",
                    models.ForeignKey(
                        help_text="The previously active version, if any.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="qa.policy",
                    ),
                ),
                (
                    "failed_cases",
                    models.PositiveIntegerField(
                        help_text="Number of test cases that failed; empty if they were not asked.",
                        null=True,
                    ),
                ),
                (
                    "reason",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Why it was activated although test cases failed or were not asked.",
                        max_length=1000,
                    ),
                ),
            ],
            options={
                "ordering": ["-at", "-pk"],
            },
        ),
        migrations.CreateModel(
            name="RefusalWording",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "language",
                    models.CharField(
                        choices=[
                            ("en", "English"),
                            ("de", "German"),
                            ("xx", "other (no stemming)"),
                        ],
                        max_length=2,
                    ),
                ),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("nothing_known", "nothing_known"),
                            ("too_far", "too_far"),
                            ("unverified_only", "unverified_only"),
                            ("expired_only", "expired_only"),
                            ("not_entitled", "not_entitled"),
                            ("not_answered", "not_answered"),
                            ("model_declined", "model_declined"),
                            ("malformed_output", "malformed_output"),
                            ("unsupported", "unsupported"),
                            ("low_confidence", "low_confidence"),
                            ("no_probe", "no_probe"),
                            ("sources_disagree", "sources_disagree"),
                            ("policy_stale", "policy_stale"),
                        ],
                        max_length=20,
                    ),
                ),
                ("text", models.TextField(max_length=1000)),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="refusal_wordings",
                        to="kb.knowledgebase",
                    ),
                ),
            ],
            options={
                "ordering": ["knowledge_base", "language", "reason"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("knowledge_base", "language", "reason"),
                        name="refusal_wording_unique",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Repeat",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "is_better",
                    models.BooleanField(
                        help_text="Whether it is better: after a refusal, any answer; after an answer that was voted down, an answer that cites the entry. Empty until decided.",
                        null=True,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "after",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="repeat_of",
                        to="qa.answer",
                    ),
                ),
                (
                    "before",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="repeats",
                        to="qa.answer",
                    ),
                ),
                (
                    "entry",
                    models.ForeignKey(
                        help_text="The entry that should answer it now.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="kb.entry",
                    ),
                ),
                (
                    "gap",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="repeats",
                        to="qa.gap",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
                "indexes": [
                    models.Index(
                        fields=["before", "-created_at"], name="repeat_newest"
                    ),
                    models.Index(
                        condition=models.Q(("is_better__isnull", True)),
                        fields=["created_at"],
                        name="repeat_undecided",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Notice",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("reply", "An expert replied"),
                            ("answered", "Your question is answered now"),
                            ("doubted", "An entry of yours was voted down"),
                            ("flagged", "An entry was flagged as wrong or outdated"),
                        ],
                        max_length=8,
                    ),
                ),
                ("read_at", models.DateTimeField(null=True)),
                ("mailed_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "answer",
                    models.ForeignKey(
                        help_text="The question; in a notice about an entry, one whose answer was voted down; empty for a flag.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notices",
                        to="qa.answer",
                    ),
                ),
                (
                    "escalation",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notice",
                        to="qa.escalation",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notices",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "repeat",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notice",
                        to="qa.repeat",
                    ),
                ),
                (
                    "entry",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notices",
                        to="kb.entry",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
                "indexes": [
                    models.Index(
                        fields=["user", "-created_at", "-id"], name="notice_newest"
                    ),
                    models.Index(
                        condition=models.Q(("read_at__isnull", True)),
                        fields=["user"],
                        name="notice_unread",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("answer__isnull", False),
                                ("entry__isnull", True),
                                ("escalation__isnull", False),
                                ("kind", "reply"),
                                ("repeat__isnull", True),
                            ),
                            models.Q(
                                ("answer__isnull", False),
                                ("entry__isnull", True),
                                ("escalation__isnull", True),
                                ("kind", "answered"),
                                ("repeat__isnull", False),
                            ),
                            models.Q(
                                ("answer__isnull", False),
                                ("entry__isnull", False),
                                ("escalation__isnull", True),
                                ("kind", "doubted"),
                                ("repeat__isnull", True),
                            ),
                            models.Q(
                                ("answer__isnull", True),
                                ("entry__isnull", False),
                                ("escalation__isnull", True),
                                ("kind", "flagged"),
                                ("repeat__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="notice_tells_of_one_thing",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Retraining",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("abstention", "abstention"),
                            ("early", "early"),
                            ("joint", "joint"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("training", "being trained"),
                            ("failed", "not possible"),
                            ("shadow", "not better, in shadow"),
                            ("waiting", "better, waiting for approval"),
                            ("promoted", "active"),
                            ("declined", "declined, in shadow"),
                            ("reverted", "taken back"),
                        ],
                        default="training",
                        max_length=8,
                    ),
                ),
                (
                    "reviewed",
                    models.PositiveIntegerField(
                        help_text="Number of reviewed answers when it began."
                    ),
                ),
                (
                    "labels",
                    models.PositiveIntegerField(
                        default=0, help_text="Labelled answers that it was fitted on."
                    ),
                ),
                ("labels_right", models.PositiveIntegerField(default=0)),
                (
                    "golden",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="Golden answers that both probes were compared on.",
                    ),
                ),
                ("golden_right", models.PositiveIntegerField(default=0)),
                ("champion_auroc", models.FloatField(null=True)),
                ("challenger_auroc", models.FloatField(null=True)),
                (
                    "low",
                    models.FloatField(
                        help_text="Lower end of the 95 % interval of challenger minus champion.",
                        null=True,
                    ),
                ),
                ("high", models.FloatField(null=True)),
                (
                    "reason",
                    models.TextField(
                        blank=True, help_text="Why retraining was not possible."
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "challenger",
                    models.ForeignKey(
                        help_text="The new probe.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="retrainings",
                        to="probes.probe",
                    ),
                ),
                (
                    "champion",
                    models.ForeignKey(
                        help_text="The probe that was active.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="probes.probe",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="jobs.job",
                    ),
                ),
                (
                    "recalibrated",
                    models.JSONField(
                        default=list,
                        help_text="[before, after]: the policies whose minimum was set for the new probe.",
                    ),
                ),
                (
                    "scores",
                    models.JSONField(
                        default=list,
                        help_text="[former confidence, new one, is right, weight] of each golden answer.",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "training")),
                        fields=("kind",),
                        name="retraining_one_at_a_time",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RetrainingStep",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "before",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("training", "being trained"),
                            ("failed", "not possible"),
                            ("shadow", "not better, in shadow"),
                            ("waiting", "better, waiting for approval"),
                            ("promoted", "active"),
                            ("declined", "declined, in shadow"),
                            ("reverted", "taken back"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "after",
                    models.CharField(
                        choices=[
                            ("training", "being trained"),
                            ("failed", "not possible"),
                            ("shadow", "not better, in shadow"),
                            ("waiting", "better, waiting for approval"),
                            ("promoted", "active"),
                            ("declined", "declined, in shadow"),
                            ("reverted", "taken back"),
                        ],
                        max_length=8,
                    ),
                ),
                ("note", models.CharField(blank=True, max_length=300)),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "by",
                    models.ForeignKey(
                        help_text="Who decided; empty if automatic.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "retraining",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="steps",
                        to="qa.retraining",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="ReviewSample",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "seed",
                    models.BigIntegerField(
                        help_text="The same seed draws the same answers."
                    ),
                ),
                (
                    "hours",
                    models.FloatField(
                        help_text="Experts' time for the sample, in hours.",
                        validators=[
                            django.core.validators.MinValueValidator(0.05),
                            django.core.validators.MaxValueValidator(200),
                        ],
                    ),
                ),
                (
                    "minutes_a_review",
                    models.FloatField(
                        default=4,
                        help_text="Minutes per review.",
                        validators=[
                            django.core.validators.MinValueValidator(0.25),
                            django.core.validators.MaxValueValidator(120),
                        ],
                    ),
                ),
                (
                    "second_share",
                    models.FloatField(
                        default=0.2,
                        help_text="Share of answers that a second expert reviews too, in [0, 1].",
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1),
                        ],
                    ),
                ),
                (
                    "since",
                    models.DateTimeField(help_text="Start of the period, inclusive."),
                ),
                (
                    "until",
                    models.DateTimeField(help_text="End of the period, exclusive."),
                ),
                (
                    "dimensions",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(
                            choices=[
                                ("certainty", "certainty"),
                                ("outcome", "outcome and gate"),
                                ("vote", "vote"),
                                ("product_line", "product line"),
                                ("line_of_business", "line of business"),
                                ("period", "day"),
                            ],
                            max_length=16,
                        ),
                        default=list,
                        help_text="Dimensions by which its strata differ; the others were merged because there were more strata than reviews.",
                        size=None,
                    ),
                ),
                (
                    "population",
                    models.PositiveIntegerField(
                        default=0, help_text="Answers eligible for the sample."
                    ),
                ),
                ("drawn_at", models.DateTimeField(auto_now_add=True)),
                (
                    "drawn_by",
                    models.ForeignKey(
                        blank=True,
                        help_text="Empty if drawn by the schedule.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="review_samples",
                        to="kb.knowledgebase",
                    ),
                ),
            ],
            options={
                "ordering": ["-drawn_at", "-pk"],
                "indexes": [
                    models.Index(
                        fields=["knowledge_base", "-drawn_at"],
                        name="review_sample_newest",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("since__lt", models.F("until"))),
                        name="review_sample_window_not_empty",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("hours__gt", 0), ("minutes_a_review__gt", 0)
                        ),
                        name="review_sample_time_positive",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ReviewStratum",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "vote",
                    models.CharField(
                        blank=True,
                        choices=[("up", "up"), ("down", "down"), ("none", "no vote")],
                        max_length=4,
                    ),
                ),
                (
                    "outcome",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("pending", "pending"),
                            ("answered", "answered"),
                            ("refused", "refused"),
                            ("failed", "failed"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "gate",
                    models.CharField(
                        blank=True,
                        help_text="The gate that refused; empty for answers.",
                        max_length=12,
                    ),
                ),
                (
                    "period",
                    models.DateField(
                        blank=True, help_text="The day of the answers.", null=True
                    ),
                ),
                (
                    "population",
                    models.PositiveIntegerField(
                        help_text="Number of answers in the stratum."
                    ),
                ),
                (
                    "drawn",
                    models.PositiveIntegerField(
                        help_text="Number of answers drawn at random, without second reviews."
                    ),
                ),
                (
                    "line_of_business",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="kb.tag",
                    ),
                ),
                (
                    "product_line",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="kb.tag",
                    ),
                ),
                (
                    "sample",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="strata",
                        to="qa.reviewsample",
                    ),
                ),
                (
                    "certainty",
                    models.CharField(
                        blank=True,
                        choices=[("close", "close"), ("clear", "clear")],
                        max_length=5,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "review strata",
                "ordering": ["sample", "pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("drawn__lte", models.F("population"))),
                        name="review_stratum_drawn_of_population",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Review",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "round",
                    models.PositiveSmallIntegerField(
                        default=1,
                        help_text="2 for the second opinion, which is given without seeing the first.",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("locked", "in progress"),
                            ("done", "done"),
                            ("skipped", "skipped"),
                        ],
                        default="waiting",
                        max_length=7,
                    ),
                ),
                ("locked_until", models.DateTimeField(blank=True, null=True)),
                (
                    "completeness",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        choices=[(0, "no"), (1, "partly"), (2, "yes")],
                        null=True,
                    ),
                ),
                (
                    "correctness",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        choices=[(0, "no"), (1, "partly"), (2, "yes")],
                        null=True,
                    ),
                ),
                (
                    "truthfulness",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        choices=[(0, "no"), (1, "partly"), (2, "yes")],
                        help_text="Whether the evidence supports the answer.",
                        null=True,
                    ),
                ),
                (
                    "should_be_answered",
                    models.BooleanField(
                        blank=True,
                        help_text="For a refusal: whether it was false.",
                        null=True,
                    ),
                ),
                (
                    "evidence_used",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        blank=True,
                        default=list,
                        help_text="Ids of the pieces of evidence that support the right answer.",
                        size=None,
                    ),
                ),
                (
                    "ideal_answer",
                    models.TextField(
                        blank=True, help_text="The ideal answer.", max_length=8000
                    ),
                ),
                ("note", models.TextField(blank=True, max_length=2000)),
                ("reviewed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "seconds_spent",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Seconds from the lock to the judgement.",
                        null=True,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "answer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reviews",
                        to="qa.answer",
                    ),
                ),
                (
                    "assignee",
                    models.ForeignKey(
                        blank=True,
                        help_text="The expert who is to review it; empty for all experts.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="assigned_reviews",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "entry",
                    models.ForeignKey(
                        blank=True,
                        help_text="The entry that was added or edited in the review.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="reviews",
                        to="kb.entry",
                    ),
                ),
                (
                    "locked_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="locked_reviews",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "reviewed_by",
                    models.ForeignKey(
                        blank=True,
                        help_text="Who judged it; until then, the author of the draft.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="reviews",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "skipped_by",
                    models.ForeignKey(
                        blank=True,
                        help_text="Who skipped it last; it is not offered to them again.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tag",
                    models.ForeignKey(
                        blank=True,
                        help_text="The tag whose experts review it.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="reviews",
                        to="kb.tag",
                    ),
                ),
                (
                    "stratum",
                    models.ForeignKey(
                        blank=True,
                        help_text="The stratum it was drawn from; empty if it was requested by hand.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reviews",
                        to="qa.reviewstratum",
                    ),
                ),
                (
                    "falls_short",
                    models.BooleanField(
                        default=False,
                        help_text="Whether the policy counts it as a false answer although it is correct and true to its evidence.",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
                "indexes": [
                    models.Index(fields=["-created_at", "-id"], name="review_newest"),
                    models.Index(fields=["-reviewed_at", "-id"], name="review_judged"),
                    models.Index(
                        condition=models.Q(("round", 2), ("state", "done")),
                        fields=["answer"],
                        name="review_second_judged",
                    ),
                    models.Index(
                        condition=models.Q(("state", "done"), _negated=True),
                        fields=["-state", "created_at", "id"],
                        name="review_queue",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("answer", "round"), name="review_one_a_round"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("round__in", [1, 2])),
                        name="review_round_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("reviewed_at__isnull", False), ("state", "done")),
                            models.Q(
                                models.Q(("state", "done"), _negated=True),
                                ("reviewed_at__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="review_done_when_judged",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "done"), _negated=True),
                            ("should_be_answered__isnull", False),
                            models.Q(
                                ("completeness__isnull", False),
                                ("correctness__isnull", False),
                                ("truthfulness__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="review_says_something",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("locked_until__isnull", False), ("state", "locked")
                            ),
                            models.Q(
                                models.Q(("state", "locked"), _negated=True),
                                ("locked_until__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="review_lock_ends",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("completeness__isnull", True),
                                ("completeness__lte", 2),
                                _connector="OR",
                            ),
                            models.Q(
                                ("correctness__isnull", True),
                                ("correctness__lte", 2),
                                _connector="OR",
                            ),
                            models.Q(
                                ("truthfulness__isnull", True),
                                ("truthfulness__lte", 2),
                                _connector="OR",
                            ),
                        ),
                        name="review_grades_in_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Vote",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("is_up", models.BooleanField()),
                (
                    "reasons",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(
                            choices=[
                                ("wrong", "It is wrong"),
                                ("incomplete", "It is incomplete"),
                                ("outdated", "It is out of date"),
                                ("off_topic", "It answers another question"),
                                ("not_in_evidence", "The evidence does not say so"),
                                ("unclear", "It is hard to understand"),
                                ("should_be_known", "We should know this"),
                                ("entry_exists", "There is an entry for it"),
                                ("wrong_reason", "The reason given is wrong"),
                                ("other", "Something else"),
                            ],
                            max_length=20,
                        ),
                        blank=True,
                        default=list,
                        help_text="What is wrong; only with a thumbs down.",
                        size=None,
                    ),
                ),
                ("comment", models.TextField(blank=True, max_length=2000)),
                (
                    "expected_answer",
                    models.TextField(
                        blank=True,
                        help_text="The expected answer; only with a thumbs down.",
                        max_length=4000,
                    ),
                ),
                (
                    "handled_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="When it was marked as handled.",
                        null=True,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "answer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="votes",
                        to="qa.answer",
                    ),
                ),
                (
                    "handled_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="handled_votes",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="votes",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "answering_entry",
                    models.ForeignKey(
                        blank=True,
                        help_text="The entry beside a refusal that answers the question.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="kb.entry",
                    ),
                ),
            ],
            options={
                "ordering": ["-updated_at", "-pk"],
                "indexes": [
                    models.Index(fields=["-created_at", "-id"], name="vote_newest"),
                    models.Index(fields=["-updated_at", "-id"], name="vote_changed"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("answer", "user"), name="vote_one_each"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="VoteChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("up", models.SmallIntegerField(help_text="1, 0 or -1.")),
                ("down", models.SmallIntegerField(help_text="1, 0 or -1.")),
                (
                    "answer",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="qa.answer",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PastQuestion",
            fields=[
                (
                    "answer",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="past_question",
                        serialize=False,
                        to="qa.answer",
                    ),
                ),
                (
                    "vector",
                    pgvector.django.vector.VectorField(
                        help_text="Embedding of the question, unit length."
                    ),
                ),
                (
                    "language_model",
                    models.CharField(
                        help_text="Fingerprint of the model that gave the verdict.",
                        max_length=200,
                    ),
                ),
                (
                    "verdict",
                    models.FloatField(
                        help_text="The model's verdict: probability that the question can be answered.",
                        null=True,
                    ),
                ),
                (
                    "can_be_answered",
                    models.BooleanField(
                        help_text="Experts' judgement: the answer was right, or the refusal was false."
                    ),
                ),
                (
                    "is_known",
                    models.BooleanField(
                        help_text="Whether the language model answers it correctly without evidence; empty if no right answer is known.",
                        null=True,
                    ),
                ),
                (
                    "own_model",
                    models.CharField(
                        blank=True,
                        help_text="Fingerprint of the model and prompt form that measured `is_known`.",
                        max_length=64,
                    ),
                ),
                (
                    "labelled_at",
                    models.DateTimeField(help_text="Time of the latest judgement."),
                ),
                (
                    "embedding_model",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="kb.embeddingmodel",
                    ),
                ),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="past_questions",
                        to="kb.knowledgebase",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["knowledge_base", "embedding_model", "language_model"],
                        name="past_question_scope",
                    ),
                    models.Index(
                        condition=models.Q(("is_known__isnull", False)),
                        fields=["knowledge_base", "embedding_model", "own_model"],
                        name="past_question_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AnswerEvidence",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "rank",
                    models.PositiveSmallIntegerField(help_text="1-based, best first."),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("cited", "cited"),
                            ("unused", "not used"),
                            ("near_miss", "near miss"),
                        ],
                        max_length=9,
                    ),
                ),
                ("quote", models.TextField(blank=True)),
                ("distance", models.FloatField()),
                ("confidence", models.FloatField()),
                (
                    "answer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="evidence",
                        to="qa.answer",
                    ),
                ),
                (
                    "entry",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="uses",
                        to="kb.entry",
                    ),
                ),
                (
                    "revision",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="uses",
                        to="kb.revision",
                    ),
                ),
            ],
            options={
                "ordering": ["answer", "rank"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("answer", "rank"), name="answer_evidence_rank_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ConfidenceMove",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("prior", models.FloatField(help_text="Confidence without votes.")),
                ("before", models.FloatField()),
                ("after", models.FloatField()),
                (
                    "up",
                    models.FloatField(
                        default=0.0, help_text="Weight of raters in favour."
                    ),
                ),
                (
                    "down",
                    models.FloatField(
                        default=0.0, help_text="Weight of raters against."
                    ),
                ),
                (
                    "raters",
                    models.PositiveIntegerField(
                        default=0, help_text="Number of raters."
                    ),
                ),
                (
                    "is_undo",
                    models.BooleanField(
                        default=False,
                        help_text="A person undid the changes; earlier votes no longer count.",
                    ),
                ),
                ("reason", models.CharField(blank=True, max_length=300)),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "by",
                    models.ForeignKey(
                        blank=True,
                        help_text="Who undid it; empty for a change by votes.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "entry",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="confidence_moves",
                        to="kb.entry",
                    ),
                ),
            ],
            options={
                "ordering": ["-at", "-pk"],
                "indexes": [
                    models.Index(fields=["entry", "-id"], name="confidence_move_newest")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("after__gt", 0),
                            ("after__lt", 1),
                            ("prior__gt", 0),
                            ("prior__lt", 1),
                        ),
                        name="confidence_move_in_range",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="DailyCount",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("day", models.DateField(help_text="Day of the questions, in UTC.")),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("answered", "answered"),
                            ("refused", "refused"),
                            ("failed", "failed"),
                        ],
                        max_length=8,
                    ),
                ),
                ("answers", models.PositiveIntegerField()),
                ("gate", models.CharField(blank=True, max_length=12)),
                ("reason", models.CharField(blank=True, max_length=20)),
                (
                    "up",
                    models.PositiveIntegerField(
                        help_text="Thumbs up on these answers, on whatever day they were given."
                    ),
                ),
                (
                    "down",
                    models.PositiveIntegerField(
                        help_text="Thumbs down on these answers."
                    ),
                ),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="kb.knowledgebase",
                    ),
                ),
                (
                    "tag",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="kb.tag",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=(
                            "tag",
                            "day",
                            "knowledge_base",
                            "outcome",
                            "gate",
                            "reason",
                        ),
                        name="daily_count_unique",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="DailyLatency",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("day", models.DateField(help_text="Day of the questions, in UTC.")),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("answered", "answered"),
                            ("refused", "refused"),
                            ("failed", "failed"),
                        ],
                        max_length=8,
                    ),
                ),
                ("answers", models.PositiveIntegerField()),
                ("bucket", models.SmallIntegerField()),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="kb.knowledgebase",
                    ),
                ),
                (
                    "tag",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="kb.tag",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tag", "day", "knowledge_base", "outcome", "bucket"),
                        name="daily_latency_unique",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SelfCalibrationSettings",
            fields=[
                (
                    "knowledge_base",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="self_calibration_settings",
                        serialize=False,
                        to="kb.knowledgebase",
                    ),
                ),
                (
                    "wrong_share_target",
                    models.PositiveSmallIntegerField(
                        choices=[
                            (10, "at most 1 in 10 shown answers wrong"),
                            (20, "at most 1 in 20 shown answers wrong"),
                            (50, "at most 1 in 50 shown answers wrong"),
                            (100, "at most 1 in 100 shown answers wrong"),
                        ],
                        default=20,
                        help_text="Measured on its own questions, so it is not a promise about people's questions.",
                        verbose_name="wrong answers",
                    ),
                ),
                (
                    "calibrates_itself",
                    models.CharField(
                        choices=[
                            ("off", "never"),
                            ("propose", "propose a version"),
                            ("activate", "activate the version at once"),
                        ],
                        default="activate",
                        help_text="A version whose thresholds a person set is never replaced automatically.",
                        max_length=8,
                        verbose_name="when its knowledge has changed",
                    ),
                ),
                (
                    "uses_evaluations",
                    models.BooleanField(
                        default=False,
                        help_text="Those of the newest evaluation of own questions, which can then no longer serve as a test. Questions judged in reviews are always used.",
                        verbose_name="use labelled questions too",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SelfCalibration",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "target",
                    models.FloatField(
                        help_text="Largest permitted share of wrong answers among those shown.",
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.0),
                        ],
                    ),
                ),
                (
                    "unanswerable",
                    models.FloatField(
                        help_text="Assumed share of questions without an answer, half of them foreign.",
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.0),
                        ],
                    ),
                ),
                (
                    "min_entry_answer",
                    models.FloatField(
                        help_text="The threshold; 1.01: none meets the target."
                    ),
                ),
                (
                    "entries",
                    models.PositiveIntegerField(
                        help_text="Entries that its own questions were made from."
                    ),
                ),
                (
                    "own",
                    models.PositiveIntegerField(
                        help_text="Own questions, each asked with its entry and without it."
                    ),
                ),
                (
                    "foreign",
                    models.PositiveIntegerField(
                        help_text="Questions from other trades."
                    ),
                ),
                (
                    "shown",
                    models.PositiveIntegerField(
                        help_text="Answers shown at the threshold."
                    ),
                ),
                (
                    "wrong",
                    models.PositiveIntegerField(
                        help_text="Wrong ones among those shown."
                    ),
                ),
                (
                    "wrong_share",
                    models.FloatField(
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.0),
                        ],
                    ),
                ),
                (
                    "wrong_low",
                    models.FloatField(
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.0),
                        ],
                    ),
                ),
                (
                    "wrong_high",
                    models.FloatField(
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.0),
                        ],
                    ),
                ),
                (
                    "answered_share",
                    models.FloatField(
                        help_text="Share of its own questions that are answered correctly.",
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.0),
                        ],
                    ),
                ),
                (
                    "answered_low",
                    models.FloatField(
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.0),
                        ],
                    ),
                ),
                (
                    "answered_high",
                    models.FloatField(
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.0),
                        ],
                    ),
                ),
                (
                    "curve",
                    models.JSONField(
                        default=list,
                        help_text="[threshold, share answered, share wrong], each of them a list.",
                    ),
                ),
                (
                    "notes",
                    models.JSONField(default=list, help_text="One sentence each."),
                ),
                (
                    "not_activated",
                    models.CharField(
                        blank=True,
                        help_text="Why the version was only proposed.",
                        max_length=200,
                    ),
                ),
                ("seed", models.IntegerField(default=0)),
                ("verifier", models.CharField(max_length=64)),
                ("embedder", models.CharField(max_length=64)),
                ("retrieval", models.CharField(max_length=100)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="self_calibrations",
                        to="kb.knowledgebase",
                    ),
                ),
                (
                    "policy",
                    models.ForeignKey(
                        help_text="The version that it created, or that already had its thresholds.",
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="self_calibrations",
                        to="qa.policy",
                    ),
                ),
                (
                    "reviewed",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="Questions that experts judged in reviews, weighted by strata.",
                    ),
                ),
                (
                    "evaluated",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="Labelled questions of the newest evaluation, if used.",
                    ),
                ),
                (
                    "named",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="Own questions whose entry was named in a vote.",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
            },
        ),
        migrations.CreateModel(
            name="SavedCase",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "key",
                    models.CharField(
                        help_text="Its id in files; unique in the knowledge base.",
                        max_length=200,
                    ),
                ),
                ("question", models.TextField(max_length=2000)),
                (
                    "expect",
                    models.CharField(
                        choices=[("answered", "answered"), ("refused", "refused")],
                        max_length=8,
                    ),
                ),
                (
                    "answer_contains",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=500),
                        blank=True,
                        default=list,
                        help_text="One of these must be in the answer.",
                        size=None,
                    ),
                ),
                (
                    "references",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=500),
                        blank=True,
                        default=list,
                        help_text="Right answers, one of which must be in the answer.",
                        size=None,
                    ),
                ),
                (
                    "gate",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("boundary", "boundary"),
                            ("verbatim", "verbatim"),
                            ("hard_refusal", "hard_refusal"),
                            ("entry", "entry"),
                            ("soft_refusal", "soft_refusal"),
                            ("abstention", "abstention"),
                            ("agreement", "agreement"),
                        ],
                        help_text="The gate that must decide it.",
                        max_length=12,
                    ),
                ),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("nothing_known", "nothing_known"),
                            ("too_far", "too_far"),
                            ("unverified_only", "unverified_only"),
                            ("expired_only", "expired_only"),
                            ("not_entitled", "not_entitled"),
                            ("not_answered", "not_answered"),
                            ("model_declined", "model_declined"),
                            ("malformed_output", "malformed_output"),
                            ("unsupported", "unsupported"),
                            ("low_confidence", "low_confidence"),
                            ("no_probe", "no_probe"),
                            ("sources_disagree", "sources_disagree"),
                            ("policy_stale", "policy_stale"),
                        ],
                        help_text="The reason that the asker must be shown.",
                        max_length=20,
                    ),
                ),
                (
                    "group",
                    models.CharField(
                        blank=True,
                        help_text="Cases of one group are kept together in resampling.",
                        max_length=200,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="saved_cases",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "entries",
                    models.ManyToManyField(
                        blank=True,
                        help_text="One of them must be cited; empty: any entry may be cited.",
                        related_name="saved_cases",
                        to="kb.entry",
                    ),
                ),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The asker's groups, in addition to the role agent.",
                        related_name="saved_cases",
                        to="auth.group",
                    ),
                ),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="saved_cases",
                        to="kb.knowledgebase",
                    ),
                ),
            ],
            options={
                "verbose_name": "test case",
                "ordering": ["knowledge_base", "question", "pk"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("knowledge_base", "key"), name="saved_case_key_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="InboxMark",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("escalation", "Escalation"),
                            ("import", "Import"),
                            ("review", "Review"),
                            ("conflict", "Conflict"),
                            ("entry", "Due entry"),
                            ("proposal", "Proposed entry"),
                            ("gap", "Gap"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "subject",
                    models.BigIntegerField(help_text="Id of the waiting row."),
                ),
                ("is_assigned", models.BooleanField(default=False)),
                (
                    "snoozed_until",
                    models.DateTimeField(
                        help_text="Until then it is left out of this person's inbox only.",
                        null=True,
                    ),
                ),
                ("changed_at", models.DateTimeField(auto_now=True)),
                (
                    "changed_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="inbox_marks",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "kind", "subject"), name="inbox_mark_one_each"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("is_assigned", True)),
                        fields=("kind", "subject"),
                        name="inbox_mark_one_assignee",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("is_assigned", True),
                            ("snoozed_until__isnull", False),
                            _connector="OR",
                        ),
                        name="inbox_mark_says_something",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DailyModel",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("day", models.DateField(help_text="Day of the questions, in UTC.")),
                ("answers", models.PositiveIntegerField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("embedder", "Embedding model"),
                            ("verifier", "Verifier"),
                            ("language_model", "Language model"),
                            ("own_knowledge", "Language model, own knowledge"),
                        ],
                        max_length=14,
                    ),
                ),
                ("fingerprint", models.CharField(max_length=200)),
                ("bucket", models.SmallIntegerField()),
                ("tokens_read", models.PositiveBigIntegerField()),
                ("tokens_written", models.PositiveBigIntegerField()),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="kb.knowledgebase",
                    ),
                ),
                (
                    "tag",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="kb.tag",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=(
                            "tag",
                            "day",
                            "knowledge_base",
                            "kind",
                            "fingerprint",
                            "bucket",
                        ),
                        name="daily_model_unique",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="DailyShadow",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("day", models.DateField(help_text="Day of the questions, in UTC.")),
                ("answers", models.PositiveIntegerField()),
                ("gate", models.CharField(max_length=12)),
                (
                    "refused",
                    models.PositiveIntegerField(
                        help_text="Answers that the gate would have refused."
                    ),
                ),
                (
                    "right",
                    models.PositiveIntegerField(
                        help_text="Those of them that were judged right in reviews."
                    ),
                ),
                (
                    "wrong",
                    models.PositiveIntegerField(
                        help_text="Those of them that were judged wrong in reviews."
                    ),
                ),
                ("up", models.PositiveIntegerField(help_text="Thumbs up on them.")),
                (
                    "down",
                    models.PositiveIntegerField(help_text="Thumbs down on them."),
                ),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="kb.knowledgebase",
                    ),
                ),
                (
                    "tag",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="kb.tag",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tag", "day", "knowledge_base", "gate"),
                        name="daily_shadow_unique",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.RunSQL(RULES, UNDO_RULES),
        migrations.RunSQL(AUDIT, UNDO_AUDIT),
    ]
