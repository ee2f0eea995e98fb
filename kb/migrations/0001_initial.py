from pathlib import Path

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.comparison
import pgvector.django.halfvec
import pgvector.django.vector
from django.conf import settings
from django.db import migrations, models
from pgvector.django import VectorExtension

import kb.imports.models

RULES, PAST, AUDIT = (
    Path(__file__).with_name(name).read_text()
    for name in ("rules.sql", "past.sql", "audit.sql")
)
UNDO_RULES = """
DROP VIEW kb_revisionoutline, kb_entryoutline, kb_entrywords CASCADE;
DROP FUNCTION nescio_audiences, nescio_sees_all, kb_source_audiences, kb_record_entry,
    kb_refuse_entry_move, kb_refuse_revision_delete, kb_refuse_revision_update,
    kb_keep_upkeep, kb_begin_upkeep, kb_expiry_notice, kb_review_due, kb_keep_half_vectors
    CASCADE;
"""
UNDO_PAST = """
DROP FUNCTION kb_past;
DROP FUNCTION kb_keep_former_row, kb_forget_conflict, kb_keep_former_vector CASCADE;
"""
UNDO_AUDIT = """
DROP FUNCTION kb_audit_comment, kb_audit_wording, kb_audit_source CASCADE;
"""


class Migration(migrations.Migration):
    initial = True

    # A database that has all of these has this one.
    replaces = [
        ("kb", "0002_audit_audiences"),
        ("kb", "0003_several_vectors"),
        ("kb", "0004_revisions_keep_their_audience"),
        ("kb", "0005_votes_make_due"),
        ("kb", "0006_keep_texts_days"),
        ("kb", "0007_flagged_entries"),
        ("kb", "0008_comments"),
        ("kb", "0009_past"),
        ("kb", "0010_followed_sources"),
        ("kb", "0011_entries_by_change"),
        ("kb", "0012_revision_audience"),
        ("kb", "0013_revisions_without_a_second_index"),
        ("kb", "0014_proposals_by_decision"),
        ("kb", "0015_flag_reasons"),
        ("kb", "0016_wordings"),
        ("kb", "0017_imported_and_denied_wordings"),
        ("kb", "0018_entries_by_end"),
        ("kb", "0019_embedding_sample"),
        ("kb", "0020_planned_entries"),
        ("kb", "0021_synonyms"),
        ("kb", "0022_own_keys"),
        ("kb", "0023_plans_of_entries"),
        ("kb", "0024_plans_by_entry"),
        ("kb", "0025_excel_imports"),
        ("kb", "0026_planned_sections"),
        ("kb", "0027_json_imports"),
    ]

    dependencies = [
        ("accounts", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("jobs", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        VectorExtension(),
        migrations.CreateModel(
            name="EntryWords",
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
                ("language", models.CharField(max_length=2)),
                ("search_vector", django.contrib.postgres.search.SearchVectorField()),
            ],
            options={
                "db_table": "kb_entrywords",
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="Audience",
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
                ("slug", models.SlugField(unique=True)),
                ("name", models.CharField(max_length=100)),
                (
                    "everyone",
                    models.BooleanField(
                        default=False, help_text="Every signed-in user belongs to it."
                    ),
                ),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Members of these groups see the entries of this audience.",
                        related_name="audiences",
                        to="auth.group",
                    ),
                ),
            ],
            options={
                "ordering": ["slug"],
            },
        ),
        migrations.CreateModel(
            name="KnowledgeBase",
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
                ("slug", models.SlugField(unique=True)),
                ("name", models.CharField(max_length=100)),
                (
                    "language",
                    models.CharField(
                        choices=[
                            ("en", "English"),
                            ("de", "German"),
                            ("xx", "other (no stemming)"),
                        ],
                        default="en",
                        max_length=2,
                    ),
                ),
                (
                    "review_interval_days",
                    models.PositiveIntegerField(
                        blank=True,
                        default=180,
                        help_text="Days after which a verified entry must be verified again; empty: entries never become due by age alone.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(3650),
                        ],
                        verbose_name="review interval",
                    ),
                ),
                (
                    "when_overdue",
                    models.CharField(
                        choices=[
                            ("mark", "stays verified and is marked as overdue"),
                            ("doubt", "needs review once the grace period is over"),
                        ],
                        default="mark",
                        max_length=5,
                        verbose_name="overdue entries",
                    ),
                ),
                (
                    "overdue_grace_days",
                    models.PositiveIntegerField(
                        default=30,
                        help_text="Days after a review became due before the entry needs review.",
                        validators=[django.core.validators.MaxValueValidator(3650)],
                        verbose_name="grace period",
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "keep_texts_days",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Days after which a nightly job erases the words of questions, answers and comments on them; empty: never. Counts and grades are kept.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(3650),
                        ],
                        verbose_name="keep questions for",
                    ),
                ),
            ],
            options={
                "verbose_name": "knowledge base",
                "ordering": ["slug"],
            },
        ),
        migrations.CreateModel(
            name="Document",
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
                ("title", models.CharField(max_length=300)),
                (
                    "source",
                    models.CharField(
                        blank=True,
                        help_text="Where it comes from: an address, a file name, a contract number.",
                        max_length=500,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "audience",
                    models.ForeignKey(
                        help_text="The audience of entries that are added to it.",
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="documents",
                        to="kb.audience",
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="documents",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="documents",
                        to="kb.knowledgebase",
                    ),
                ),
            ],
            options={
                "ordering": ["title", "pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("title", ""), _negated=True),
                        name="document_has_title",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Section",
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
                ("heading", models.CharField(max_length=300)),
                (
                    "position",
                    models.PositiveIntegerField(
                        help_text="0-based position among its siblings."
                    ),
                ),
                (
                    "document",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sections",
                        to="kb.document",
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="children",
                        to="kb.section",
                    ),
                ),
            ],
            options={
                "ordering": ["document", "parent_id", "position"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("document", "parent", "position"),
                        name="section_position_unique",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Tag",
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
                ("slug", models.SlugField(unique=True)),
                ("name", models.CharField(max_length=100)),
                (
                    "facet",
                    models.CharField(
                        choices=[
                            ("product_line", "product line"),
                            ("line_of_business", "line of business"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "experts",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Experts who review questions about this tag.",
                        related_name="expert_tags",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["facet", "slug"],
            },
        ),
        migrations.CreateModel(
            name="Entry",
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
                    "place",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Place of an imported entry in its source, such as a page or a line.",
                        max_length=200,
                    ),
                ),
                (
                    "source_key",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Digest that identifies it within its source.",
                        max_length=64,
                    ),
                ),
                (
                    "source_digest",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Digest of its text in the latest version of the source; empty if it is no longer there.",
                        max_length=64,
                    ),
                ),
                (
                    "question",
                    models.CharField(
                        blank=True,
                        help_text="Set for a question-and-answer entry, whose text is shown word for word.",
                        max_length=1000,
                    ),
                ),
                ("text", models.TextField(max_length=8000)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("draft", "draft"),
                            ("proposed", "proposed by a model"),
                            ("in_review", "in review"),
                            ("verified", "verified"),
                            ("needs_review", "needs review"),
                            ("retired", "retired"),
                        ],
                        default="draft",
                        max_length=12,
                    ),
                ),
                (
                    "origin",
                    models.CharField(
                        choices=[
                            ("manual", "written by hand"),
                            ("imported", "imported"),
                            ("enriched", "proposed by a language model"),
                            ("review", "from an expert's review"),
                        ],
                        default="manual",
                        max_length=8,
                    ),
                ),
                (
                    "confidence",
                    models.FloatField(
                        help_text="In (0, 1]; 1 if and only if a person verified it."
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
                        default="en",
                        max_length=2,
                    ),
                ),
                (
                    "valid_until",
                    models.DateTimeField(
                        blank=True,
                        help_text="From this time on it is never used as evidence.",
                        null=True,
                    ),
                ),
                ("verified_at", models.DateTimeField(blank=True, null=True)),
                (
                    "review_interval_days",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Days between verifications; empty: the knowledge base's interval.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(3650),
                        ],
                        verbose_name="review interval",
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "search_vector",
                    models.GeneratedField(
                        db_persist=True,
                        expression=models.Case(
                            models.When(
                                language="en",
                                then=django.contrib.postgres.search.SearchVector(
                                    django.db.models.functions.comparison.Coalesce(
                                        "question", models.Value("")
                                    ),
                                    "text",
                                    config=models.Value("english"),
                                ),
                            ),
                            models.When(
                                language="de",
                                then=django.contrib.postgres.search.SearchVector(
                                    django.db.models.functions.comparison.Coalesce(
                                        "question", models.Value("")
                                    ),
                                    "text",
                                    config=models.Value("german"),
                                ),
                            ),
                            default=django.contrib.postgres.search.SearchVector(
                                django.db.models.functions.comparison.Coalesce(
                                    "question", models.Value("")
                                ),
                                "text",
                                config=models.Value("simple"),
                            ),
                        ),
                        output_field=django.contrib.postgres.search.SearchVectorField(),
                    ),
                ),
                (
                    "audience",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="kb.audience",
                    ),
                ),
                (
                    "document",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="kb.document",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="owned_entries",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "verified_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="verified_entries",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="kb.knowledgebase",
                    ),
                ),
                (
                    "section",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="entries",
                        to="kb.section",
                    ),
                ),
                (
                    "line_of_business",
                    models.ForeignKey(
                        blank=True,
                        limit_choices_to={"facet": "line_of_business"},
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="entries_of_line_of_business",
                        to="kb.tag",
                    ),
                ),
                (
                    "product_line",
                    models.ForeignKey(
                        blank=True,
                        limit_choices_to={"facet": "product_line"},
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="entries_of_product_line",
                        to="kb.tag",
                    ),
                ),
                (
                    "own_key",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Id of the row in the system that the entry was imported from.",
                        max_length=200,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "entries",
                "ordering": ["-updated_at", "-pk"],
                "indexes": [
                    django.contrib.postgres.indexes.GinIndex(
                        fields=["search_vector"], name="entry_search_vector"
                    ),
                    models.Index(fields=["-created_at", "-id"], name="entry_newest"),
                    models.Index(
                        fields=["knowledge_base", "audience", "state"],
                        include=("id", "confidence", "valid_until"),
                        name="entry_visibility",
                    ),
                    models.Index(fields=["-updated_at", "-id"], name="entry_changed"),
                    models.Index(
                        condition=models.Q(("valid_until__isnull", False)),
                        fields=["knowledge_base", "valid_until"],
                        name="entry_ends",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("confidence__gt", 0), ("confidence__lte", 1)
                        ),
                        name="entry_confidence_in_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("text", ""), _negated=True),
                        name="entry_has_text",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("confidence", 1),
                                ("state", "verified"),
                                ("verified_at__isnull", False),
                                ("verified_by__isnull", False),
                            ),
                            models.Q(
                                models.Q(("state", "verified"), _negated=True),
                                ("confidence__lt", 1),
                            ),
                            ("state", "retired"),
                            _connector="OR",
                        ),
                        name="entry_certain_only_when_verified",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("source_key", ""), _negated=True),
                        fields=("document", "source_key"),
                        name="entry_once_in_its_source",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="EmbeddingModel",
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
                    "name",
                    models.CharField(
                        help_text='"bundled", a sentence-transformers name or path, or "server:" and a name.',
                        max_length=300,
                    ),
                ),
                (
                    "fingerprint",
                    models.CharField(
                        help_text="Digest of weights, backend and dtype.",
                        max_length=64,
                        unique=True,
                    ),
                ),
                ("dimensions", models.PositiveIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("candidate", "candidate"),
                            ("active", "active"),
                            ("retired", "retired"),
                        ],
                        default="candidate",
                        max_length=9,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("activated_at", models.DateTimeField(blank=True, null=True)),
                (
                    "sample",
                    pgvector.django.vector.VectorField(
                        editable=False,
                        help_text="A server's vector of a sample text, which identifies the server's model.",
                        null=True,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "active")),
                        fields=("state",),
                        name="embedding_model_one_active",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="EntryEmbedding",
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
                ("vector", pgvector.django.vector.VectorField()),
                (
                    "text_sha256",
                    models.CharField(
                        help_text="Digest of all embedded texts of the entry, to detect a stale vector.",
                        max_length=64,
                    ),
                ),
                (
                    "entry",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="embeddings",
                        to="kb.entry",
                    ),
                ),
                (
                    "model",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="embeddings",
                        to="kb.embeddingmodel",
                    ),
                ),
                ("part", models.PositiveSmallIntegerField(db_default=1, default=1)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("entry", "model", "part"), name="entry_embedding_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="JudgedEntry",
            fields=[
                (
                    "entry",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="judged",
                        serialize=False,
                        to="kb.entry",
                    ),
                ),
                ("revision", models.PositiveIntegerField()),
                (
                    "model",
                    models.CharField(
                        help_text="Version of the judging model or weights.",
                        max_length=100,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="HalfVector",
            fields=[
                (
                    "embedding",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="kb.entryembedding",
                    ),
                ),
                ("entry_id", models.BigIntegerField()),
                ("model_id", models.BigIntegerField()),
                ("half", pgvector.django.halfvec.HalfVectorField()),
            ],
        ),
        migrations.CreateModel(
            name="FollowedSource",
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
                ("name", models.CharField(max_length=100)),
                (
                    "kind",
                    models.CharField(
                        help_text="A key of `kb.sources.kinds.KINDS`.", max_length=30
                    ),
                ),
                ("address", models.CharField(max_length=500)),
                (
                    "credential",
                    models.CharField(
                        blank=True,
                        help_text="The environment variable that holds it; never the credential itself.",
                        max_length=100,
                    ),
                ),
                (
                    "every_hours",
                    models.PositiveIntegerField(
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(2160),
                        ],
                        verbose_name="read every",
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(default=True, verbose_name="read on schedule"),
                ),
                (
                    "job_id",
                    models.UUIDField(
                        blank=True, help_text="The latest check.", null=True
                    ),
                ),
                ("next_check_at", models.DateTimeField(blank=True, null=True)),
                (
                    "checked_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="When it was last read completely.",
                        null=True,
                    ),
                ),
                (
                    "counts",
                    models.JSONField(default=dict, help_text="Results of that check."),
                ),
                (
                    "note",
                    models.TextField(
                        blank=True, help_text="What that check left undone, and why."
                    ),
                ),
                (
                    "error",
                    models.TextField(
                        blank=True, help_text="Why the last check failed."
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="followed_sources",
                        to="kb.knowledgebase",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="followed_sources",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["name", "pk"],
            },
        ),
        migrations.CreateModel(
            name="Import",
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
                    "file",
                    models.FileField(
                        max_length=300,
                        storage=kb.imports.models.import_storage,
                        upload_to="%Y/%m/",
                    ),
                ),
                ("file_name", models.CharField(max_length=200)),
                ("file_sha256", models.CharField(max_length=64)),
                (
                    "format",
                    models.CharField(
                        choices=[
                            ("csv", "CSV"),
                            ("tsv", "TSV"),
                            ("json", "JSON"),
                            ("jsonl", "JSON Lines"),
                            ("markdown", "Markdown"),
                            ("html", "HTML"),
                            ("text", "plain text"),
                            ("pdf", "PDF"),
                            ("docx", "DOCX"),
                            ("xlsx", "Excel"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "source",
                    models.CharField(
                        help_text="Identifies the document: a new version has the same source.",
                        max_length=500,
                    ),
                ),
                (
                    "document_title",
                    models.CharField(
                        blank=True,
                        help_text="If empty: the title in the file, or the file's name.",
                        max_length=300,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("uploaded", "uploaded"),
                            ("planned", "planned"),
                            ("applying", "applying"),
                            ("applied", "applied"),
                            ("failed", "failed"),
                        ],
                        default="uploaded",
                        max_length=8,
                    ),
                ),
                (
                    "job_id",
                    models.UUIDField(
                        blank=True,
                        help_text="The latest job that planned or applied it.",
                        null=True,
                    ),
                ),
                ("cursor", models.JSONField(default=dict)),
                ("counts", models.JSONField(default=dict)),
                ("examples", models.JSONField(default=dict)),
                (
                    "bad_rows",
                    models.JSONField(default=list, help_text="The first invalid rows."),
                ),
                (
                    "error",
                    models.TextField(
                        blank=True, help_text="Why the file could not be read."
                    ),
                ),
                ("notes", models.JSONField(default=list)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("applied_at", models.DateTimeField(blank=True, null=True)),
                (
                    "audience",
                    models.ForeignKey(
                        help_text="The audience of new documents and entries.",
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="imports",
                        to="kb.audience",
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="imports",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "verify_as",
                    models.ForeignKey(
                        blank=True,
                        help_text="Curator who verifies the imported entries; empty: they stay in review.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="imports",
                        to="kb.knowledgebase",
                    ),
                ),
                (
                    "line_of_business",
                    models.ForeignKey(
                        blank=True,
                        help_text="The line of business of new entries.",
                        limit_choices_to={"facet": "line_of_business"},
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
                        help_text="The product line of new entries.",
                        limit_choices_to={"facet": "product_line"},
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="kb.tag",
                    ),
                ),
                (
                    "followed",
                    models.ForeignKey(
                        blank=True,
                        help_text="The followed source of the document: entries that it no longer has are only proposed for retirement.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="imports",
                        to="kb.followedsource",
                    ),
                ),
                (
                    "planned_at",
                    models.DateTimeField(
                        blank=True, help_text="When planning began.", null=True
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
            },
        ),
        migrations.CreateModel(
            name="ImportedKey",
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
                ("source", models.CharField(max_length=500)),
                ("key", models.CharField(max_length=64)),
                ("digest", models.CharField(max_length=64)),
                (
                    "import_run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="keys",
                        to="kb.import",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("import_run", "source", "key"),
                        name="imported_key_unique",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Proposal",
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
                ("seed_question", models.CharField(max_length=1000)),
                ("question", models.CharField(max_length=1000)),
                (
                    "question_sha256",
                    models.CharField(
                        help_text="Digest of the question's words, so that none is proposed twice.",
                        max_length=64,
                    ),
                ),
                ("answer", models.CharField(max_length=600)),
                ("sentence", models.CharField(max_length=2000)),
                (
                    "stated",
                    models.FloatField(
                        help_text="Confidence that the model states, in [0, 1]."
                    ),
                ),
                (
                    "agreement",
                    models.FloatField(
                        help_text="Share of further sampled answers that agree with it, in [0, 1]."
                    ),
                ),
                (
                    "likelihood",
                    models.FloatField(
                        blank=True,
                        help_text="Geometric mean probability of the answer's tokens; empty if the model does not return it.",
                        null=True,
                    ),
                ),
                (
                    "confidence",
                    models.FloatField(help_text="The entry's confidence, in (0, 1)."),
                ),
                ("model_name", models.CharField(max_length=200)),
                ("model_fingerprint", models.CharField(max_length=64)),
                ("prompt_version", models.CharField(max_length=20)),
                ("random_seed", models.BigIntegerField()),
                (
                    "nearest",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Entries that were nearest: pairs of id and distance, nearest first.",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("proposed", "proposed"),
                            ("approved", "approved"),
                            ("edited", "edited and approved"),
                            ("rejected", "rejected"),
                        ],
                        default="proposed",
                        max_length=8,
                    ),
                ),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                ("reason", models.CharField(blank=True, max_length=300)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "decided_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="decided_proposals",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "entry",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="proposal",
                        to="kb.entry",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="jobs.job",
                    ),
                ),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="proposals",
                        to="kb.knowledgebase",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
                "indexes": [
                    models.Index(
                        fields=["knowledge_base", "state", "-created_at"],
                        name="proposal_queue",
                    ),
                    models.Index(
                        models.OrderBy(
                            models.F("decided_at"), descending=True, nulls_first=True
                        ),
                        models.OrderBy(models.F("confidence"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        name="proposal_by_decision",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("knowledge_base", "question_sha256"),
                        name="proposal_question_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("agreement__gte", 0),
                            ("agreement__lte", 1),
                            ("stated__gte", 0),
                            ("stated__lte", 1),
                        ),
                        name="proposal_shares_in_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("confidence__gt", 0), ("confidence__lt", 1)
                        ),
                        name="proposal_confidence_in_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("decided_at__isnull", True), ("state", "proposed")
                            ),
                            models.Q(
                                models.Q(("state", "proposed"), _negated=True),
                                ("decided_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="proposal_decided_at_a_time",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Reminder",
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
                    "due_at",
                    models.DateTimeField(
                        help_text="The entry's due date at that time; identifies the occasion."
                    ),
                ),
                ("sent_at", models.DateTimeField(auto_now_add=True)),
                (
                    "entry",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reminders",
                        to="kb.entry",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "entry", "due_at"), name="reminder_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Revision",
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
                    "number",
                    models.PositiveIntegerField(help_text="1-based, without gaps."),
                ),
                ("question", models.CharField(blank=True, max_length=1000)),
                ("text", models.TextField(max_length=8000)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("draft", "draft"),
                            ("proposed", "proposed by a model"),
                            ("in_review", "in review"),
                            ("verified", "verified"),
                            ("needs_review", "needs review"),
                            ("retired", "retired"),
                        ],
                        max_length=12,
                    ),
                ),
                ("confidence", models.FloatField()),
                ("valid_until", models.DateTimeField(blank=True, null=True)),
                (
                    "language",
                    models.CharField(
                        choices=[
                            ("en", "English"),
                            ("de", "German"),
                            ("xx", "other (no stemming)"),
                        ],
                        default="en",
                        max_length=2,
                    ),
                ),
                ("verified_at", models.DateTimeField(blank=True, null=True)),
                (
                    "review_interval_days",
                    models.PositiveIntegerField(blank=True, null=True),
                ),
                ("reason", models.CharField(blank=True, max_length=300)),
                (
                    "database_user",
                    models.CharField(
                        blank=True,
                        help_text="Database user who made a change outside of the services.",
                        max_length=63,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "audience",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="kb.audience",
                    ),
                ),
                (
                    "author",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="revisions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "document",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="kb.document",
                    ),
                ),
                (
                    "entry",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="revisions",
                        to="kb.entry",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "verified_by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="verified_revisions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "section",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="kb.section",
                    ),
                ),
                (
                    "line_of_business",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="kb.tag",
                    ),
                ),
                (
                    "product_line",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="kb.tag",
                    ),
                ),
            ],
            options={
                "ordering": ["entry", "-number"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("entry", "number"), name="revision_number_unique"
                    )
                ],
                "indexes": [
                    models.Index(fields=["entry", "audience"], name="revision_audience")
                ],
            },
        ),
        migrations.CreateModel(
            name="Upkeep",
            fields=[
                (
                    "entry",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="upkeep",
                        serialize=False,
                        to="kb.entry",
                    ),
                ),
                (
                    "uses",
                    models.PositiveIntegerField(
                        db_default=0, help_text="Answers that cited it."
                    ),
                ),
                ("last_used_at", models.DateTimeField(null=True)),
                (
                    "up",
                    models.IntegerField(
                        db_default=0, help_text="Thumbs up on answers that cited it."
                    ),
                ),
                (
                    "down",
                    models.IntegerField(
                        db_default=0, help_text="Thumbs down on answers that cited it."
                    ),
                ),
                (
                    "waiting_since",
                    models.DateTimeField(
                        help_text='When it entered "in review" or "needs review".',
                        null=True,
                    ),
                ),
                (
                    "review_due",
                    models.DateTimeField(
                        help_text="If verified: when it must be verified again.",
                        null=True,
                    ),
                ),
                (
                    "expiry_notice_at",
                    models.DateTimeField(
                        help_text="When the owner is notified of its expiry.", null=True
                    ),
                ),
                ("postponed_until", models.DateTimeField(null=True)),
                (
                    "postponed_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "doubted_since",
                    models.DateTimeField(
                        help_text="If verified: since when votes have called it wrong or out of date.",
                        null=True,
                    ),
                ),
                (
                    "flagged_since",
                    models.DateTimeField(
                        help_text="Since when people have flagged it as outdated.",
                        null=True,
                    ),
                ),
                (
                    "due_at",
                    models.GeneratedField(
                        db_persist=True,
                        expression=models.Case(
                            models.When(
                                models.Q(
                                    ("waiting_since__isnull", True),
                                    ("review_due__isnull", True),
                                    ("expiry_notice_at__isnull", True),
                                    ("doubted_since__isnull", True),
                                    ("flagged_since__isnull", True),
                                ),
                                then=models.Value(None),
                            ),
                            default=django.db.models.functions.comparison.Greatest(
                                django.db.models.functions.comparison.Least(
                                    models.F("waiting_since"),
                                    models.F("review_due"),
                                    models.F("expiry_notice_at"),
                                    models.F("doubted_since"),
                                    models.F("flagged_since"),
                                ),
                                models.F("postponed_until"),
                            ),
                        ),
                        output_field=models.DateTimeField(null=True),
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["review_due"], name="upkeep_review"),
                    models.Index(fields=["expiry_notice_at"], name="upkeep_expiry"),
                    models.Index(
                        condition=models.Q(("doubted_since__isnull", False)),
                        fields=["doubted_since"],
                        name="upkeep_doubted",
                    ),
                    models.Index(
                        condition=models.Q(("due_at__isnull", False)),
                        fields=["-uses", "due_at", "entry"],
                        name="upkeep_queue",
                    ),
                    models.Index(fields=["due_at"], name="upkeep_due"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Conflict",
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
                    "first_revision",
                    models.PositiveIntegerField(
                        help_text="The revision that was judged."
                    ),
                ),
                (
                    "second_revision",
                    models.PositiveIntegerField(
                        help_text="The revision that was judged."
                    ),
                ),
                (
                    "texts_sha256",
                    models.CharField(
                        help_text="Digest of both texts, to detect a change.",
                        max_length=64,
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("duplicate", "duplicate"),
                            ("contradiction", "contradiction"),
                        ],
                        max_length=13,
                    ),
                ),
                (
                    "score",
                    models.FloatField(help_text="Probability of the kind, 0 to 1."),
                ),
                (
                    "distance",
                    models.FloatField(help_text="Euclidean, of unit vectors, 0 to 2."),
                ),
                (
                    "reasons",
                    models.JSONField(
                        default=list,
                        help_text="Contradicting parts: signal, reason, and places in the texts.",
                    ),
                ),
                (
                    "model",
                    models.CharField(
                        help_text="Version of the judging model or weights.",
                        max_length=100,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "open"),
                            ("merged", "merged"),
                            ("kept", "both kept"),
                            ("overridden", "overridden"),
                            ("outdated", "outdated"),
                        ],
                        default="open",
                        max_length=10,
                    ),
                ),
                ("resolved_at", models.DateTimeField(blank=True, null=True)),
                ("reason", models.CharField(blank=True, max_length=300)),
                ("found_at", models.DateTimeField(auto_now_add=True)),
                (
                    "resolved_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="resolved_conflicts",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "first",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="conflicts_as_first",
                        to="kb.entry",
                    ),
                ),
                (
                    "kept",
                    models.ForeignKey(
                        blank=True,
                        help_text="The entry that a merge kept or an override declared right.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="kb.entry",
                    ),
                ),
                (
                    "second",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="conflicts_as_second",
                        to="kb.entry",
                    ),
                ),
            ],
            options={
                "ordering": ["-found_at", "-pk"],
                "indexes": [
                    models.Index(fields=["-found_at", "-id"], name="conflict_newest"),
                    models.Index(
                        condition=models.Q(("state", "open")),
                        fields=["first"],
                        name="conflict_open_first",
                    ),
                    models.Index(
                        condition=models.Q(("state", "open")),
                        fields=["second"],
                        name="conflict_open_second",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("first", "second"), name="conflict_pair_unique"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("first__lt", models.F("second"))),
                        name="conflict_lower_id_first",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("score__gte", 0), ("score__lte", 1)),
                        name="conflict_score_in_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RevisionOutline",
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
                ("entry_id", models.BigIntegerField()),
                ("number", models.PositiveIntegerField()),
                ("audience_id", models.BigIntegerField(null=True)),
            ],
            options={
                "db_table": "kb_revisionoutline",
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="Flag",
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
                ("note", models.TextField(blank=True, max_length=1000)),
                ("created_at", models.DateTimeField()),
                (
                    "entry",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="flags",
                        to="kb.entry",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="flags",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="flags",
                        to="kb.followedsource",
                    ),
                ),
                (
                    "reasons",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(
                            choices=[
                                ("wrong", "It is wrong"),
                                ("incomplete", "It is incomplete"),
                                ("outdated", "It is out of date"),
                                ("unclear", "It is hard to understand"),
                                ("other", "Something else"),
                            ],
                            max_length=20,
                        ),
                        blank=True,
                        db_default=[],
                        default=list,
                        size=None,
                    ),
                ),
            ],
            options={
                "ordering": ["created_at", "pk"],
            },
        ),
        migrations.CreateModel(
            name="Comment",
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
                ("text", models.TextField(max_length=2000)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "author",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="entry_comments",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "entry",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="comments",
                        to="kb.entry",
                    ),
                ),
            ],
            options={
                "ordering": ["created_at", "pk"],
            },
        ),
        migrations.CreateModel(
            name="FormerRow",
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
                    "source",
                    models.CharField(help_text="Name of the table.", max_length=40),
                ),
                ("row_id", models.BigIntegerField()),
                (
                    "was",
                    models.JSONField(
                        help_text="null: the row did not exist before.", null=True
                    ),
                ),
                ("until", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["source", "row_id", "until"], name="former_row_at"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="FormerVector",
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
                ("part", models.PositiveSmallIntegerField()),
                ("vector", pgvector.django.vector.VectorField()),
                (
                    "text_sha256",
                    models.CharField(
                        help_text="Digest of all embedded texts of the entry.",
                        max_length=64,
                    ),
                ),
                (
                    "entry",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="kb.entry",
                    ),
                ),
                (
                    "model",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="kb.embeddingmodel",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("entry", "model", "text_sha256", "part"),
                        name="former_vector_unique",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="FollowedDocument",
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
                ("key", models.CharField(max_length=500)),
                ("title", models.CharField(blank=True, max_length=300)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("kept", "imported"),
                            ("failed", "never read"),
                            ("gone", "gone"),
                        ],
                        default="failed",
                        max_length=6,
                    ),
                ),
                (
                    "marker",
                    models.CharField(
                        blank=True,
                        help_text="A value from the listing, if any, that changes with the content.",
                        max_length=200,
                    ),
                ),
                (
                    "known",
                    models.JSONField(
                        default=dict,
                        help_text="Data for detecting changes, in the format of its kind.",
                    ),
                ),
                (
                    "error",
                    models.TextField(blank=True, help_text="Why it could not be read."),
                ),
                (
                    "note",
                    models.TextField(
                        blank=True, help_text="The parts that were not imported."
                    ),
                ),
                ("changed_at", models.DateTimeField(null=True)),
                (
                    "audience",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="kb.audience",
                    ),
                ),
                (
                    "document",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="kb.document",
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="documents",
                        to="kb.followedsource",
                    ),
                ),
            ],
            options={
                "ordering": ["source", "key"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("source", "key"), name="followed_document_key"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="FollowRule",
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
                ("position", models.PositiveIntegerField()),
                ("group", models.CharField(blank=True, max_length=300)),
                (
                    "audience",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="follow_rules",
                        to="kb.audience",
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="rules",
                        to="kb.followedsource",
                    ),
                ),
            ],
            options={
                "ordering": ["source", "position"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("source", "position"), name="follow_rule_position"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Wording",
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
                    "text",
                    models.TextField(max_length=500, verbose_name="also asked as"),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "added_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="entry_wordings",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "entry",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="wordings",
                        to="kb.entry",
                    ),
                ),
                (
                    "answers",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        help_text="If not, the entry is never shown for this question.",
                        verbose_name="answers it",
                    ),
                ),
                (
                    "is_imported",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="From the file that the entry was imported from; the file's next version replaces it.",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("entry", "text"), name="wording_once_an_entry"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PlannedEntry",
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
                ("action", models.CharField(max_length=16)),
                ("place", models.CharField(blank=True, max_length=200)),
                ("question", models.TextField(blank=True)),
                ("text", models.TextField()),
                ("also_asked", models.TextField(blank=True)),
                (
                    "before",
                    models.TextField(
                        blank=True,
                        help_text="The entry's present text, if it would be changed.",
                    ),
                ),
                (
                    "import_run",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="planned",
                        to="kb.import",
                    ),
                ),
                (
                    "own_key",
                    models.CharField(blank=True, db_default="", max_length=200),
                ),
                (
                    "entry",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        help_text="Empty if the entry would be created.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="kb.entry",
                    ),
                ),
                (
                    "is_edited",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Whether a person has edited the entry since it was last imported.",
                    ),
                ),
                (
                    "section",
                    models.TextField(
                        blank=True,
                        db_default="",
                        help_text="The headings above it, outermost first.",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "planned entries",
                "ordering": ["pk"],
                "indexes": [
                    models.Index(fields=["entry"], name="planned_entry_by_entry")
                ],
            },
        ),
        migrations.CreateModel(
            name="Synonym",
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
                    "word",
                    models.CharField(
                        help_text="What people write: a word, an abbreviation or several words, such as “biro”.",
                        max_length=60,
                    ),
                ),
                (
                    "means",
                    models.CharField(
                        help_text="What the entries use instead, such as “pen”.",
                        max_length=60,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "added_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="synonyms",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="synonyms",
                        to="kb.knowledgebase",
                    ),
                ),
            ],
            options={
                "ordering": ["knowledge_base", "word"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("knowledge_base", "word"), name="synonym_once_a_base"
                    )
                ],
            },
        ),
        migrations.RunSQL(RULES, UNDO_RULES),
        migrations.RunSQL(PAST, UNDO_PAST),
        migrations.RunSQL(AUDIT, UNDO_AUDIT),
    ]
