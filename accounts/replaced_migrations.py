"""Databases that have some of the migrations that one of today's replaces, not all.

Django takes the replacing one out of its plan there, and finds nothing missing.
"""

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder


def count_missing() -> int:
    """Return how many migrations this database lacks, replaced ones among them."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return len(plan) + len(missing_replaced(executor.loader, executor.recorder))


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
