import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import accounts.models

# As accounts/migrations/audit.sql watches the rest of what opens access.
WATCH = """
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON accounts_providergroup
    FOR EACH ROW EXECUTE FUNCTION accounts_audit('provider group');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON accounts_providergroup_groups
    FOR EACH ROW EXECUTE FUNCTION accounts_audit(
        'provider group', 'providergroup_id accounts_providergroup name',
        'group_id auth_group name');
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON accounts_provideraccount
    FOR EACH ROW EXECUTE FUNCTION accounts_audit(
        'sign-in account', 'user_id auth_user username');
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_tokens_that_act_for_others"),
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ProviderGroup",
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
                    models.CharField(
                        help_text="As the provider sends it, often a number; * is everybody it signs in.",
                        max_length=255,
                        unique=True,
                    ),
                ),
                (
                    "is_superuser",
                    models.BooleanField(
                        default=False,
                        help_text="Its members may do and see everything. Set by superusers alone.",
                        verbose_name="makes superusers",
                    ),
                ),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        related_name="provider_groups",
                        to="auth.group",
                        verbose_name="opens",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="ProviderAccount",
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
                    "issuer",
                    models.CharField(
                        default=accounts.models.configured_issuer,
                        help_text="The provider, as NESCIO_OIDC_ISSUER names it.",
                        max_length=500,
                    ),
                ),
                (
                    "subject",
                    models.CharField(
                        help_text="The claim sub: the person's number at the provider.",
                        max_length=255,
                    ),
                ),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="provider_account",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("issuer", "subject"), name="provider_account_by_subject"
                    )
                ],
            },
        ),
        migrations.AddField(
            model_name="apitoken",
            name="may_manage_users",
            field=models.BooleanField(
                default=False,
                db_default=False,
                help_text="It may make, change and close accounts over REST, for an admin's user.",
            ),
        ),
        # The tables' triggers go with them.
        migrations.RunSQL(WATCH, migrations.RunSQL.noop),
    ]
