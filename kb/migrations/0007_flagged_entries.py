from pathlib import Path

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import F, Q
from django.db.models.functions import Greatest, Least

KEEP = Path(__file__).with_name("flags_make_due.sql").read_text()
KEPT_BEFORE = Path(__file__).with_name("votes_make_due.sql").read_text()
# What belongs to an entry is seen with it.
SECURE = """
ALTER TABLE kb_flag ENABLE ROW LEVEL SECURITY;
CREATE POLICY kb_flag_entry ON kb_flag
    USING (EXISTS (SELECT FROM kb_entry e WHERE e.id = entry_id));
"""
DATES = (
    "waiting_since", "review_due", "expiry_notice_at", "doubted_since", "flagged_since",
)  # fmt: skip


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("kb", "0006_keep_texts_days"),
    ]

    operations = [
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
            ],
            options={"ordering": ["created_at", "pk"]},
        ),
        migrations.RunSQL(SECURE, migrations.RunSQL.noop),
        migrations.AddField(
            model_name="upkeep",
            name="flagged_since",
            field=models.DateTimeField(
                null=True, help_text="Since when people have flagged it as outdated."
            ),
        ),
        # A generated column can not be changed: it is made again, and its indexes with it.
        migrations.RemoveIndex(model_name="upkeep", name="upkeep_queue"),
        migrations.RemoveIndex(model_name="upkeep", name="upkeep_due"),
        migrations.RemoveField(model_name="upkeep", name="due_at"),
        migrations.AddField(
            model_name="upkeep",
            name="due_at",
            field=models.GeneratedField(
                db_persist=True,
                expression=models.Case(
                    models.When(
                        Q(waiting_since__isnull=True)
                        & Q(review_due__isnull=True)
                        & Q(expiry_notice_at__isnull=True)
                        & Q(doubted_since__isnull=True)
                        & Q(flagged_since__isnull=True),
                        then=models.Value(None),
                    ),
                    default=Greatest(
                        Least(*(F(name) for name in DATES)), F("postponed_until")
                    ),
                ),
                output_field=models.DateTimeField(null=True),
            ),
        ),
        migrations.AddIndex(
            model_name="upkeep",
            index=models.Index(
                fields=["-uses", "due_at", "entry"],
                condition=Q(due_at__isnull=False),
                name="upkeep_queue",
            ),
        ),
        migrations.AddIndex(
            model_name="upkeep",
            index=models.Index(fields=["due_at"], name="upkeep_due"),
        ),
        migrations.RunSQL(KEEP, KEPT_BEFORE),
    ]
