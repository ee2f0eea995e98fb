import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    # A database that has all of these has this one.
    replaces = [
        ("jobs", "0002_jobs_know_their_origin"),
    ]

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Job",
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
                    "kind",
                    models.CharField(
                        help_text='"app.verb", such as kb.embed.', max_length=50
                    ),
                ),
                ("parameters", models.JSONField(default=dict)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "queued"),
                            ("running", "running"),
                            ("succeeded", "succeeded"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                        ],
                        default="queued",
                        max_length=9,
                    ),
                ),
                ("done", models.PositiveBigIntegerField(default=0)),
                ("total", models.PositiveBigIntegerField(blank=True, null=True)),
                (
                    "cursor",
                    models.JSONField(
                        default=dict,
                        help_text="Where the handler continues; in its own format.",
                    ),
                ),
                ("result", models.JSONField(default=dict)),
                ("error", models.TextField(blank=True)),
                (
                    "attempts",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="Runs started; also used to fence off a stale worker.",
                    ),
                ),
                (
                    "attempts_without_progress",
                    models.PositiveIntegerField(
                        db_column="barren_attempts",
                        default=0,
                        help_text="Consecutive runs without progress, including the current one.",
                    ),
                ),
                (
                    "max_attempts",
                    models.PositiveIntegerField(
                        default=5,
                        help_text="The job fails after this many runs without progress.",
                    ),
                ),
                (
                    "idempotency_key",
                    models.CharField(
                        blank=True,
                        help_text="Enqueueing again with the key of an unfinished job returns that job.",
                        max_length=200,
                    ),
                ),
                ("cancel_requested", models.BooleanField(default=False)),
                ("worker", models.CharField(blank=True, max_length=200)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                (
                    "notified_at",
                    models.DateTimeField(
                        blank=True,
                        db_column="rung_at",
                        help_text="When a worker was last notified.",
                        null=True,
                    ),
                ),
                (
                    "not_before",
                    models.DateTimeField(
                        blank=True,
                        help_text="A retry does not start before this time.",
                        null=True,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="jobs",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "origin",
                    models.JSONField(
                        db_default=models.Value({}, models.JSONField()),
                        default=dict,
                        help_text="The request that started it: its id, and its trace (W3C Trace Context).",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ["queued", "running"])),
                        fields=["state", "lease_until"],
                        name="job_unfinished",
                    ),
                    models.Index(fields=["owner", "-created_at"], name="job_by_owner"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("state__in", ["queued", "running"]),
                            models.Q(("idempotency_key", ""), _negated=True),
                        ),
                        fields=("idempotency_key",),
                        name="job_idempotency_key_unfinished",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "running"), _negated=True),
                            ("lease_until__isnull", False),
                            _connector="OR",
                        ),
                        name="job_running_has_lease",
                    ),
                ],
            },
        ),
    ]
