import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from accounts.migrations._application_role import make_role


class Migration(migrations.Migration):
    initial = True

    dependencies = [
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
                        help_text="What it is for, in its owner's words.",
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
        # Before the tables of other apps: they are granted to it by default.
        migrations.RunPython(make_role, migrations.RunPython.noop),
    ]
