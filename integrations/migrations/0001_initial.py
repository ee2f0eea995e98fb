from pathlib import Path

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import integrations.events.models
import integrations.widget.models

TRIGGERS = Path(__file__).with_name("events.sql").read_text()
UNDO = """
DROP FUNCTION integrations_note_refusal, integrations_note_vote,
    integrations_note_escalation, integrations_note_gap, integrations_note_verified,
    integrations_note_revision, integrations_note_conflict, integrations_note_drift,
    integrations_note_activation, integrations_note_job, integrations_note_done,
    integrations_note_notice, integrations_note_source, integrations_note_delivery CASCADE;
DROP FUNCTION integrations_note_event;
"""


class Migration(migrations.Migration):
    initial = True

    # A database that has all of these has this one.
    replaces = [
        ("integrations", "0001_events"),
        ("integrations", "0002_widgets"),
        ("integrations", "0003_alerts"),
        ("integrations", "0004_events_for_copies"),
    ]

    dependencies = [
        ("accounts", "0001_initial"),
        ("jobs", "0001_initial"),
        ("kb", "0001_initial"),
        ("qa", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Endpoint",
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
                ("name", models.CharField(max_length=100, unique=True)),
                (
                    "url",
                    models.CharField(
                        help_text="Receives a POST request with JSON for each event.",
                        max_length=500,
                        verbose_name="address",
                    ),
                ),
                (
                    "types",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=30),
                        help_text="`EventType`s.",
                        size=None,
                        verbose_name="events",
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(
                        default=True,
                        help_text="Events that occur while it is off are not sent later.",
                        verbose_name="active",
                    ),
                ),
                (
                    "secret_seed",
                    models.CharField(
                        default=integrations.events.models.new_seed,
                        editable=False,
                        max_length=64,
                    ),
                ),
                (
                    "former_seed",
                    models.CharField(blank=True, editable=False, max_length=64),
                ),
                ("rotated_at", models.DateTimeField(editable=False, null=True)),
                (
                    "failures",
                    models.PositiveIntegerField(
                        default=0,
                        editable=False,
                        help_text="Failed attempts since the last success.",
                    ),
                ),
                ("failing_since", models.DateTimeField(editable=False, null=True)),
                (
                    "switched_off_at",
                    models.DateTimeField(
                        editable=False,
                        help_text="When it was switched off automatically.",
                        null=True,
                    ),
                ),
                (
                    "switched_off_reason",
                    models.CharField(blank=True, editable=False, max_length=300),
                ),
                (
                    "not_before",
                    models.DateTimeField(
                        editable=False,
                        help_text="No attempt before this time: a process is sending to it, or the last attempt failed.",
                        null=True,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        blank=True,
                        help_text="Only events of this knowledge base; empty: all events, including those of no knowledge base.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="endpoints",
                        to="kb.knowledgebase",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        help_text="Only events about things that this account may see are sent.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="endpoints",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "webhook endpoint",
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="Event",
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
                ("type", models.CharField(max_length=30)),
                (
                    "data",
                    models.JSONField(
                        help_text="Ids and states at the time of the event."
                    ),
                ),
                (
                    "key",
                    models.CharField(
                        blank=True,
                        help_text="Identifies an event that is reported only once.",
                        max_length=100,
                    ),
                ),
                ("created_at", models.DateTimeField()),
                (
                    "routed_at",
                    models.DateTimeField(
                        help_text="When its deliveries were created.", null=True
                    ),
                ),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="kb.knowledgebase",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("routed_at__isnull", True)),
                        fields=["id"],
                        name="event_unrouted",
                    ),
                    models.Index(fields=["created_at"], name="event_by_time"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("key", ""), _negated=True),
                        fields=("key",),
                        name="event_key_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Delivery",
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
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("delivered", "delivered"),
                            ("failed", "failed"),
                        ],
                        default="pending",
                        max_length=9,
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("next_attempt_at", models.DateTimeField(null=True)),
                ("last_attempt_at", models.DateTimeField(null=True)),
                (
                    "status",
                    models.PositiveSmallIntegerField(
                        help_text="HTTP status.", null=True
                    ),
                ),
                ("milliseconds", models.PositiveIntegerField(null=True)),
                (
                    "response",
                    models.TextField(
                        blank=True, help_text="Beginning of the response."
                    ),
                ),
                ("error", models.TextField(blank=True)),
                (
                    "endpoint",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="integrations.endpoint",
                    ),
                ),
                (
                    "event",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="integrations.event",
                    ),
                ),
            ],
            options={
                "verbose_name": "webhook delivery",
                "verbose_name_plural": "webhook deliveries",
                "ordering": ["-pk"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "pending")),
                        fields=["endpoint", "next_attempt_at"],
                        name="delivery_due",
                    ),
                    models.Index(fields=["state", "-id"], name="delivery_by_state"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("endpoint", "event"), name="delivery_once_an_endpoint"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "pending"), _negated=True),
                            ("next_attempt_at__isnull", False),
                            _connector="OR",
                        ),
                        name="delivery_pending_has_time",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Widget",
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
                    models.SlugField(
                        help_text="Names the widget in the script tag.", unique=True
                    ),
                ),
                (
                    "origins",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=255),
                        help_text="Origins of the pages that may embed it.",
                        size=None,
                    ),
                ),
                (
                    "names_users",
                    models.BooleanField(
                        default=False,
                        help_text="Pages may name their reader in a signed claim; that reader's entitlement then applies. Only superusers can set this and see the secret.",
                        verbose_name="accepts signed claims",
                    ),
                ),
                ("is_active", models.BooleanField(default=True, verbose_name="active")),
                (
                    "secret_seed",
                    models.CharField(
                        default=integrations.widget.models.new_seed,
                        editable=False,
                        max_length=64,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "account",
                    models.ForeignKey(
                        help_text="Everyone who can open the page sees what this account may see. Use a separate account that has only the role agent and the audiences of the page.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="widgets",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="widgets",
                        to="kb.knowledgebase",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="Alert",
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
                ),
                ("mailed_at", models.DateTimeField(null=True)),
                (
                    "event",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="alerts",
                        to="integrations.event",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="alerts",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("mailed_at__isnull", True)),
                        fields=["user", "kind"],
                        name="alert_pending",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "event"), name="alert_once_a_user"
                    )
                ],
            },
        ),
        migrations.RunSQL(TRIGGERS, UNDO),
    ]
