"""Detection of databases in which only part of the replaced migrations was applied.

Django then drops the replacing migration from its plan, and reports nothing as missing.
"""

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder


def count_missing() -> int:
    """Return how many migrations this database lacks, including replaced ones."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return len(plan) + len(missing_replaced(executor.loader, executor.recorder))


def missing_replaced(
    loader: MigrationLoader, recorder: MigrationRecorder
) -> list[tuple[str, str]]:
    """Return the replaced migrations that an older version still has to apply.

    This includes an app of which only the first migration was applied, whose name the
    replacing one has kept: Django would create every table again.
    """
    applied = recorder.applied_migrations().keys()
    found: list[tuple[str, str]] = []
    for key, migration in loader.replacements.items():
        if applied & {key, *migration.replaces}:
            found += [each for each in migration.replaces if each not in applied]
    return found
