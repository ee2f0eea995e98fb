"""Databases that have some of the migrations that one of today's replaces, not all.

Django takes the replacing one out of its plan there, and finds nothing missing.
"""

from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder


def missing_replaced(
    loader: MigrationLoader, recorder: MigrationRecorder
) -> list[tuple[str, str]]:
    """Return those that have to be applied by a version that still has them.

    The first of an app counts too, whose name was kept: of a database with no more than it
    Django would make every table again.
    """
    applied = recorder.applied_migrations().keys()
    found: list[tuple[str, str]] = []
    for key, migration in loader.replacements.items():
        if applied & {key, *migration.replaces}:
            found += [each for each in migration.replaces if each not in applied]
    return found
