from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from accounts.acting import as_owner

# Before 0.1.0 each change had a migration of its own; this was the first.
_BEFORE_FIRST_VERSION = ("accounts", "0001_add_api_token")


class Command(migrate.Command):
    """Django's own, as the role that signed in: tables are changed by their owner."""

    def execute(self, *args: Any, **options: Any) -> str | None:  # noqa: ANN401  # Django's
        with as_owner("migrations"):
            if (
                _BEFORE_FIRST_VERSION
                in MigrationRecorder(connection).applied_migrations()
            ):
                raise CommandError(
                    "This database was made before version 0.1.0, which has "
                    "migrations of its own. Export its knowledge with the version that made it "
                    "(manage.py export_knowledge), migrate an empty database and run "
                    "manage.py restore_knowledge. An embedded database with nothing to "
                    "keep: stop Nescio and delete the folder var/postgres."
                )
            return super().execute(*args, **options)
