import uuid
from pathlib import Path

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import accounts.models
from accounts.migrations._application_role import let_only_triggers_write, make_role

TRIGGERS = Path(__file__).with_name("audit.sql").read_text()
UNDO = """
DROP FUNCTION accounts_audit_undone(text, int);
DROP FUNCTION accounts_audit CASCADE;
"""


class Migration(migrations.Migration):
    initial = True

    # A database that has all of these has this one.
    replaces = [
        ("accounts", "0002_audit_entries"),
        ("accounts", "0003_tokens_that_act_for_others"),
        ("accounts", "0004_identity_provider"),
        ("accounts", "0006_preferences"),
        ("accounts", "0007_alerts_by_mail"),
        ("accounts", "0008_audit_undone"),
        ("accounts", "0009_kept_replies"),
    ]

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                ("token_key", models.CharField(db_index=True, max_length=25)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("expiry", models.DateTimeField(blank=True, null=True)),
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
                    "digest",
                    models.CharField(editable=False, max_length=128, unique=True),
                ),
                (
                    "name",
                    models.CharField(
                        blank=True,
                        help_text="What the token is used for.",
                        max_length=100,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="auth_token_set",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "may_act_for_others",
                    models.BooleanField(
                        default=False,
                        help_text="Its requests may name another user, whose entitlement then applies.",
                    ),
                ),
                (
                    "may_manage_users",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="It may create, change and close accounts over REST, if its user is an admin.",
                    ),
                ),
            ],
            options={
                "verbose_name": "API token",
                "verbose_name_plural": "API tokens",
                "ordering": ["-created", "id"],
                "indexes": [
                    models.Index(fields=["user", "-created"], name="api_token_by_user")
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditEntry",
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
                ("at", models.DateTimeField()),
                (
                    "actor",
                    models.CharField(
                        blank=True,
                        help_text="Empty: the change was not made by a user's request.",
                        max_length=150,
                    ),
                ),
                (
                    "reader",
                    models.TextField(help_text="On whose behalf the statement ran."),
                ),
                ("kind", models.CharField(max_length=20)),
                (
                    "action",
                    models.CharField(
                        choices=[
                            ("insert", "added"),
                            ("update", "changed"),
                            ("delete", "removed"),
                        ],
                        max_length=10,
                    ),
                ),
                ("subject", models.CharField(max_length=500)),
                (
                    "changes",
                    models.JSONField(
                        help_text="Values before and after, by field; no secrets."
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "audit entries",
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="ProviderGroup",
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
                        help_text="As the provider sends it, often an id; * stands for everyone who signs in with it.",
                        max_length=255,
                        unique=True,
                    ),
                ),
                (
                    "is_superuser",
                    models.BooleanField(
                        default=False,
                        help_text="Its members may see and do everything. Only superusers can set this.",
                        verbose_name="makes superusers",
                    ),
                ),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        related_name="provider_groups",
                        to="auth.group",
                        verbose_name="opens",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="ProviderAccount",
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
                    "issuer",
                    models.CharField(
                        default=accounts.models.configured_issuer,
                        help_text="The provider, as named in NESCIO_OIDC_ISSUER.",
                        max_length=500,
                    ),
                ),
                (
                    "subject",
                    models.CharField(
                        help_text="The claim sub: the person's id at the provider.",
                        max_length=255,
                    ),
                ),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="provider_account",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("issuer", "subject"), name="provider_account_by_subject"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Preferences",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="preferences",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "language",
                    models.CharField(
                        blank=True,
                        choices=[("en", "English"), ("de", "German")],
                        max_length=2,
                        verbose_name="language of refusals",
                    ),
                ),
                (
                    "mails_notices",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        verbose_name="send my notices by e-mail as well",
                    ),
                ),
                (
                    "alerts",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(
                            choices=[
                                (
                                    "failures",
                                    "background work, followed sources or webhooks fail",
                                ),
                                (
                                    "drift",
                                    "live questions drift away from those that thresholds were certified on",
                                ),
                                ("escalations", "questions wait for an expert"),
                                ("gaps", "new gaps are found (once a day)"),
                            ],
                            max_length=11,
                        ),
                        help_text="Empty: the defaults of the user's roles, see `alerts_of`.",
                        null=True,
                        size=None,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "preferences",
            },
        ),
        migrations.CreateModel(
            name="KeptReply",
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
                ("key", models.CharField(max_length=255)),
                (
                    "digest",
                    models.CharField(help_text="Digest of the request.", max_length=64),
                ),
                (
                    "status",
                    models.PositiveSmallIntegerField(
                        help_text="Empty while the request is being processed.",
                        null=True,
                    ),
                ),
                ("headers", models.JSONField(default=dict)),
                (
                    "body",
                    models.TextField(
                        blank=True,
                        help_text="JSON; empty if it was too large to store.",
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "token",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="kept_replies",
                        to=settings.KNOX_TOKEN_MODEL,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="kept_replies",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "kept replies",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "token", "key"),
                        name="kept_reply_once_a_key",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        # Before the tables of other apps: they are granted to it by default.
        migrations.RunPython(make_role, migrations.RunPython.noop),
        migrations.RunPython(let_only_triggers_write, migrations.RunPython.noop),
        migrations.RunSQL(TRIGGERS, UNDO),
    ]
