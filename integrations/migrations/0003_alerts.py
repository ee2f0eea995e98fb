from pathlib import Path

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

TRIGGERS = Path(__file__).with_name("alerts.sql").read_text()
UNDO = """
DROP FUNCTION integrations_note_source, integrations_note_delivery CASCADE;
CREATE OR REPLACE FUNCTION integrations_note_event(kind text, base bigint, about jsonb)
RETURNS void LANGUAGE sql AS $$
    INSERT INTO integrations_event (type, knowledge_base_id, data, key, created_at)
    SELECT kind, base, about, '', clock_timestamp()
    WHERE EXISTS (
        SELECT FROM integrations_endpoint
        WHERE is_active AND kind = ANY (types)
            AND (knowledge_base_id IS NULL OR knowledge_base_id = base)
    )
$$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("integrations", "0002_widgets"),
        ("kb", "0010_followed_sources"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
                                "live questions drift from those that thresholds were certified on",
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
