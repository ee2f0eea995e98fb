from pathlib import Path

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

RULES = Path(__file__).with_name("follow_sources.sql").read_text()
UNDO = """
DROP FUNCTION kb_audit_source CASCADE;
DROP POLICY kb_followeddocument_source ON kb_followeddocument;
DROP POLICY kb_followrule_source ON kb_followrule;
DROP POLICY kb_followedsource_audiences ON kb_followedsource;
DROP FUNCTION kb_source_audiences;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_audit_entries"),
        ("kb", "0009_past"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
                        help_text="Of `kb.sources.kinds.KINDS`.", max_length=30
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
                        help_text="When it was last read to its end.",
                        null=True,
                    ),
                ),
                (
                    "counts",
                    models.JSONField(default=dict, help_text="What that check did."),
                ),
                (
                    "note",
                    models.TextField(
                        blank=True, help_text="What it left undone, and why."
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
                        help_text="Changes with the content, if listed.",
                        max_length=200,
                    ),
                ),
                (
                    "known",
                    models.JSONField(
                        default=dict,
                        help_text="What tells whether it changed, in its kind's format.",
                    ),
                ),
                (
                    "error",
                    models.TextField(blank=True, help_text="Why it could not be read."),
                ),
                (
                    "note",
                    models.TextField(
                        blank=True, help_text="What of it was not imported."
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
            },
        ),
        migrations.AddField(
            model_name="flag",
            name="source",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="flags",
                to="kb.followedsource",
            ),
        ),
        migrations.AddField(
            model_name="import",
            name="followed",
            field=models.ForeignKey(
                blank=True,
                help_text="Whose document it is: what is gone is only proposed for retirement.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="imports",
                to="kb.followedsource",
            ),
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
            },
        ),
        migrations.AddConstraint(
            model_name="followeddocument",
            constraint=models.UniqueConstraint(
                fields=("source", "key"), name="followed_document_key"
            ),
        ),
        migrations.AddConstraint(
            model_name="followrule",
            constraint=models.UniqueConstraint(
                fields=("source", "position"), name="follow_rule_position"
            ),
        ),
        migrations.RunSQL(RULES, UNDO),
    ]
