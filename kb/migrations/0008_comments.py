from pathlib import Path

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

RULES = Path(__file__).with_name("comments.sql").read_text()
UNDO = """
DROP FUNCTION kb_audit_comment CASCADE;
DROP POLICY kb_comment_entry ON kb_comment;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_audit_entries"),
        ("kb", "0007_flagged_entries"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
        migrations.RunSQL(RULES, UNDO),
    ]
