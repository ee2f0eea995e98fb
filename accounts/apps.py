from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate


class AccountsConfig(AppConfig):
    name = "accounts"
    verbose_name = "Access"

    def ready(self) -> None:
        """Give the roles their permissions whenever migrations ran; name people.

        Django's own receiver, which makes the permissions, was connected before this.
        """
        from accounts.people import label_people  # noqa: PLC0415  # needs loaded models
        from accounts.permissions import grant_role_permissions  # noqa: PLC0415  # the same

        label_people()
        # Users and roles are Django's app, and stand under Access like all of ours.
        apps.get_app_config("auth").verbose_name = self.verbose_name

        post_migrate.connect(
            grant_role_permissions, dispatch_uid="accounts.grant_role_permissions"
        )
