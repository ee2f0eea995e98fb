import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    # A database that has all of these has this one.
    replaces = [
        ("probes", "0002_rerankers"),
    ]

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Probe",
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
                            ("boundary", "boundary"),
                            ("directions", "directions"),
                            ("reranker", "reranker"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "language_model",
                    models.CharField(
                        help_text="Fingerprint of the model whose activations or signals it reads.",
                        max_length=64,
                    ),
                ),
                ("language_model_name", models.CharField(blank=True, max_length=200)),
                (
                    "form",
                    models.CharField(
                        blank=True,
                        help_text="The prompt form whose activations it reads.",
                        max_length=50,
                    ),
                ),
                (
                    "layer",
                    models.PositiveSmallIntegerField(
                        help_text="0-based block.", null=True
                    ),
                ),
                (
                    "part",
                    models.CharField(
                        blank=True, help_text="block or ffn", max_length=5
                    ),
                ),
                (
                    "data_sha256",
                    models.CharField(
                        help_text="Digest of the labelled answers that it was fitted on.",
                        max_length=64,
                    ),
                ),
                (
                    "sizes",
                    models.JSONField(
                        default=dict, help_text="{answers, groups, width}"
                    ),
                ),
                (
                    "metrics",
                    models.JSONField(
                        default=dict, help_text="Measured on held-out folds."
                    ),
                ),
                (
                    "temperature",
                    models.FloatField(
                        help_text="Divisor of its logits; fitted on held-out answers."
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("candidate", "candidate"),
                            ("shadow", "shadow"),
                            ("active", "active"),
                            ("retired", "retired"),
                        ],
                        default="candidate",
                        max_length=9,
                    ),
                ),
                (
                    "fingerprint",
                    models.CharField(
                        help_text="Digest of card and weights.",
                        max_length=64,
                        unique=True,
                    ),
                ),
                ("card", models.TextField(help_text="probe.json, unchanged.")),
                ("weights", models.BinaryField(help_text="The weights file.")),
                ("note", models.CharField(blank=True, max_length=300)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="probes",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "active")),
                        fields=("kind", "language_model"),
                        name="probe_one_active",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("kind__in", ["joint", "directions", "reranker"]),
                                ("layer__isnull", True),
                            ),
                            models.Q(
                                models.Q(
                                    ("kind__in", ["joint", "directions", "reranker"]),
                                    _negated=True,
                                ),
                                ("layer__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="probe_layer_by_kind",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ProbeChange",
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
                            ("candidate", "candidate"),
                            ("shadow", "shadow"),
                            ("active", "active"),
                            ("retired", "retired"),
                        ],
                        max_length=9,
                    ),
                ),
                (
                    "after",
                    models.CharField(
                        choices=[
                            ("candidate", "candidate"),
                            ("shadow", "shadow"),
                            ("active", "active"),
                            ("retired", "retired"),
                        ],
                        max_length=9,
                    ),
                ),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="probe_changes",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "probe",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="changes",
                        to="probes.probe",
                    ),
                ),
                (
                    "replaced",
                    models.ForeignKey(
                        help_text="The previously active probe, if any.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="probes.probe",
                    ),
                ),
            ],
            options={
                "ordering": ["-at", "-pk"],
            },
        ),
    ]
