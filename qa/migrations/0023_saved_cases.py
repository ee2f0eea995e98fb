import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# Why a version was activated against its test cases is worth more than a row of history.
AUDIT = """
CREATE TRIGGER audit AFTER INSERT ON qa_policyactivation
    FOR EACH ROW WHEN (NEW.reason <> '') EXECUTE FUNCTION accounts_audit(
        'policy activation', 'knowledge_base_id kb_knowledgebase slug',
        'policy_id qa_policy name');
"""
UNDO = "DROP TRIGGER audit ON qa_policyactivation;"


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("kb", "0006_keep_texts_days"),
        ("qa", "0022_asked_for_others"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="policy",
            name="test_cases_must_pass",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="While it is active, or to activate it, every saved test case of the knowledge base must pass. Off: a stated reason is enough.",
            ),
        ),
        migrations.AddField(
            model_name="policyactivation",
            name="failed_cases",
            field=models.PositiveIntegerField(
                help_text="Of the test cases; empty where they were not asked.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="policyactivation",
            name="reason",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="Why it was activated although test cases failed or were not asked.",
                max_length=1000,
            ),
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
                        help_text="Where it must be decided.",
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
                        help_text="The reason that its asker must be shown.",
                        max_length=20,
                    ),
                ),
                (
                    "group",
                    models.CharField(
                        blank=True,
                        help_text="What resampling keeps together.",
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
                        help_text="One of them must be cited; none: any may be.",
                        related_name="saved_cases",
                        to="kb.entry",
                    ),
                ),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Of the asker, beside the role agent.",
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
        migrations.RunSQL(AUDIT, UNDO),
    ]
