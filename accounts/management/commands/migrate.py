from typing import Any, Final

from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import migrate
from django.db import OperationalError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from psycopg.errors import LockNotAvailable

from accounts.acting import as_owner
from accounts.replaced_migrations import missing_replaced

# The first migration of the versions before 0.1.0, which had different ones.
_BEFORE_FIRST_VERSION = ("accounts", "0001_add_api_token")
_LOCK_SECONDS: Final = 10.0


class Command(migrate.Command):
    """Django's `migrate`, run as the role that connected, which owns the tables.

    A migration that waits for a table's lock also blocks all readers behind it, so it
    waits only for a limited time.
    """

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--lock-seconds",
            type=float,
            default=_LOCK_SECONDS,
            help="how long to wait for the lock of a table that is in use; 0 waits for "
            "ever, and everybody else with it (default %(default)s)",
        )

    def execute(self, *args: Any, **options: Any) -> str | None:
        seconds = options.get("lock_seconds", _LOCK_SECONDS)
        with as_owner("migrations"):
            recorder = MigrationRecorder(connection)
            if _BEFORE_FIRST_VERSION in recorder.applied_migrations():
                raise CommandError(
                    "This database was made before version 0.1.0, which has "
                    "migrations of its own. Export its knowledge with the version that made it "
                    "(manage.py export_knowledge), migrate an empty database and run "
                    "manage.py restore_knowledge. An embedded database with nothing to "
                    "keep: stop Nescio and delete the folder var/postgres."
                )
            _refuse_what_stands_between(recorder)
            _wait_for_locks(seconds)
            try:
                return super().execute(*args, **options)
            except OperationalError as error:
                if not isinstance(error.__cause__, LockNotAvailable):
                    raise
                raise CommandError(
                    f"A table that a migration changes was in use for {seconds:g} s. What "
                    "had been applied before it stays; run the command again. If it fails "
                    "again, look for long statements in pg_stat_activity, stop the "
                    "workers meanwhile, or wait longer with --lock-seconds."
                ) from error
            finally:
                _wait_for_locks(0)


def _refuse_what_stands_between(recorder: MigrationRecorder) -> None:
    missing = missing_replaced(MigrationLoader(None), recorder)
    if missing:
        raise CommandError(
            "This database is older than the migrations: they replace "
            f"{'.'.join(missing[-1])}, which was not applied. Check out the last commit "
            'before "migrations: Begin each app anew with one migration" (29 November '
            "2026), run its manage.py migrate, and then this one's."
        )


def _wait_for_locks(seconds: float) -> None:
    if connection.connection is None and not seconds:
        return  # the timeout ended with the session
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('lock_timeout', %s, false)", [f"{seconds * 1000:.0f}"]
        )
