from pathlib import Path

from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from psycopg import sql

TRIGGERS = Path(__file__).with_name("audit.sql").read_text()
READ_ONLY = "REVOKE INSERT, UPDATE, DELETE ON accounts_auditentry FROM {role}"


def let_only_triggers_write(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    if settings.DATABASE_ROLE:
        role = sql.Identifier(settings.DATABASE_ROLE)
        with editor.connection.cursor() as cursor:
            cursor.execute(sql.SQL(READ_ONLY).format(role=role))


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
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
                        help_text="Empty: no user's request.",
                        max_length=150,
                    ),
                ),
                (
                    "reader",
                    models.TextField(help_text="For whom the statement was run."),
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
                        help_text="Before and after, by field; no secrets."
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "audit entries",
                "ordering": ["-pk"],
            },
        ),
        migrations.RunPython(let_only_triggers_write, migrations.RunPython.noop),
        migrations.RunSQL(TRIGGERS, "DROP FUNCTION accounts_audit CASCADE"),
    ]
