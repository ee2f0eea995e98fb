from typing import Any

from django.core.management.commands import migrate

from accounts.acting import as_owner


class Command(migrate.Command):
    """Django's own, as the role that signed in: tables are changed by their owner."""

    def execute(self, *args: Any, **options: Any) -> str | None:  # noqa: ANN401  # Django's
        with as_owner("migrations"):
            return super().execute(*args, **options)
