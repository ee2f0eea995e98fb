from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate


class AccountsConfig(AppConfig):
    name = "accounts"
    verbose_name = "Access"

    def ready(self) -> None:
        """Grant the roles their permissions after migrations; set how users are named.

        Django's own receiver, which creates the permissions, was connected before.
        """
        from accounts.people import label_people  # noqa: PLC0415  # needs loaded models
        from accounts.permissions import grant_role_permissions  # noqa: PLC0415  # the same

        label_people()
        # Django's users and groups appear under "Access", next to our own models.
        apps.get_app_config("auth").verbose_name = self.verbose_name

        post_migrate.connect(
            grant_role_permissions, dispatch_uid="accounts.grant_role_permissions"
        )
