from pathlib import Path

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

TRIGGERS = Path(__file__).with_name("inbox.sql").read_text()
UNDO = """
DROP FUNCTION qa_audit_assignee CASCADE;
DROP TRIGGER audit ON qa_inboxmark;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_tokens_that_act_for_others"),
        ("kb", "0007_flagged_entries"),
        ("qa", "0023_saved_cases"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="InboxMark",
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
                            ("escalation", "Escalation"),
                            ("import", "Import"),
                            ("review", "Review"),
                            ("conflict", "Conflict"),
                            ("entry", "Due entry"),
                            ("proposal", "Proposed entry"),
                            ("gap", "Gap"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "subject",
                    models.BigIntegerField(help_text="Id of the row that waits."),
                ),
                ("is_assigned", models.BooleanField(default=False)),
                (
                    "snoozed_until",
                    models.DateTimeField(
                        help_text="Until then only this person's inbox leaves it out.",
                        null=True,
                    ),
                ),
                ("changed_at", models.DateTimeField(auto_now=True)),
            ],
        ),
        migrations.RemoveConstraint(
            model_name="notice",
            name="notice_tells_of_one_thing",
        ),
        migrations.AlterField(
            model_name="notice",
            name="answer",
            field=models.ForeignKey(
                help_text="The question; of an entry, one whose answer was voted down; none of a flag.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="notices",
                to="qa.answer",
            ),
        ),
        migrations.AlterField(
            model_name="notice",
            name="kind",
            field=models.CharField(
                choices=[
                    ("reply", "An expert replied"),
                    ("answered", "Your question is answered now"),
                    ("doubted", "An entry of yours was voted down"),
                    ("flagged", "An entry was flagged as outdated"),
                ],
                max_length=8,
            ),
        ),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("answer__isnull", False),
                        ("entry__isnull", True),
                        ("escalation__isnull", False),
                        ("kind", "reply"),
                        ("repeat__isnull", True),
                    ),
                    models.Q(
                        ("answer__isnull", False),
                        ("entry__isnull", True),
                        ("escalation__isnull", True),
                        ("kind", "answered"),
                        ("repeat__isnull", False),
                    ),
                    models.Q(
                        ("answer__isnull", False),
                        ("entry__isnull", False),
                        ("escalation__isnull", True),
                        ("kind", "doubted"),
                        ("repeat__isnull", True),
                    ),
                    models.Q(
                        ("answer__isnull", True),
                        ("entry__isnull", False),
                        ("escalation__isnull", True),
                        ("kind", "flagged"),
                        ("repeat__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="notice_tells_of_one_thing",
            ),
        ),
        migrations.AddField(
            model_name="inboxmark",
            name="changed_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="inboxmark",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="inbox_marks",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            model_name="inboxmark",
            constraint=models.UniqueConstraint(
                fields=("user", "kind", "subject"), name="inbox_mark_one_each"
            ),
        ),
        migrations.AddConstraint(
            model_name="inboxmark",
            constraint=models.UniqueConstraint(
                condition=models.Q(("is_assigned", True)),
                fields=("kind", "subject"),
                name="inbox_mark_one_assignee",
            ),
        ),
        migrations.AddConstraint(
            model_name="inboxmark",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("is_assigned", True),
                    ("snoozed_until__isnull", False),
                    _connector="OR",
                ),
                name="inbox_mark_says_something",
            ),
        ),
        migrations.RunSQL(TRIGGERS, UNDO),
    ]
