import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# As accounts/migrations/audit.sql watches the rest of what opens access.
WATCH = """
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON accounts_knowledgerole
    FOR EACH ROW EXECUTE FUNCTION accounts_audit(
        'knowledge role', 'user_id auth_user username', 'group_id auth_group name',
        'knowledge_base_id kb_knowledgebase slug');
"""


class Migration(migrations.Migration):
    # A database that has this has this one.
    replaces = [("accounts", "0005_knowledge_roles")]

    dependencies = [
        ("accounts", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("kb", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="KnowledgeRole",
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
                    "role",
                    models.CharField(
                        choices=[
                            ("sme", "sme: judges and replies"),
                            ("curator", "curator: also writes and verifies"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="knowledge_roles",
                        to="auth.group",
                    ),
                ),
                (
                    "knowledge_base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="roles",
                        to="kb.knowledgebase",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="knowledge_roles",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "role in a knowledge base",
                "verbose_name_plural": "roles in single knowledge bases",
                "ordering": ["knowledge_base__slug", "pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("user__isnull", True),
                            ("group__isnull", True),
                            _connector="XOR",
                        ),
                        name="knowledge_role_of_user_or_group",
                        violation_error_message="Name either a user or a group.",
                    ),
                    models.UniqueConstraint(
                        fields=("knowledge_base", "user"),
                        name="knowledge_role_once_a_user",
                    ),
                    models.UniqueConstraint(
                        fields=("knowledge_base", "group"),
                        name="knowledge_role_once_a_group",
                    ),
                ],
            },
        ),
        # The table's trigger goes with it.
        migrations.RunSQL(WATCH, migrations.RunSQL.noop),
    ]
