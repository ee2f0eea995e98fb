"""Migrations run while people ask: none may lock a table for as long as it is large.

The linter reads the SQL of each migration. Those that were written before this rule are
left out by their numbers, which are never raised: fix what it finds, or add
`IgnoreMigration()` to the migration with the reason why its table is always small.
"""

import io
import re

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db.migrations.loader import MigrationLoader
from django_migration_linter import MigrationLinter

from accounts.acting import as_owner

BEFORE_THE_RULE = {
    "accounts": 4,
    "integrations": 2,
    "jobs": 1,
    "kb": 10,
    "probes": 2,
    "qa": 25,
}
_ERRORS = ["CREATE_INDEX", "DROP_INDEX", "CREATE_INDEX_EXCLUSIVE", "REINDEX"]


@pytest.fixture
def findings(transactional_db):  # an index is made concurrently in no transaction
    def lint(*keys):
        with as_owner("migrations"):
            linter = MigrationLinter(
                str(settings.BASE_DIR),
                no_cache=True,
                no_output=True,
                warnings_as_errors_tests=_ERRORS,
            )
            for key in keys:
                linter.lint_migration(linter.migration_loader.disk_migrations[key])
        return linter.nb_erroneous

    return lint


def test_no_migration_since_the_rule_locks_a_large_table(findings):
    ours = MigrationLoader(None).disk_migrations
    new = [
        (app, name)
        for app, name in ours
        if app in BEFORE_THE_RULE and int(name[:4]) > BEFORE_THE_RULE[app]
    ]

    assert findings(*new) == 0


@pytest.mark.django_db(transaction=True)
def test_no_migration_since_the_rule_reads_all_rows_for_a_foreign_key():
    """As an `AlterField` does that only drops the field's index."""
    found = []
    for app, name in MigrationLoader(None).disk_migrations:
        if app not in BEFORE_THE_RULE or int(name[:4]) <= BEFORE_THE_RULE[app]:
            continue
        said = io.StringIO()
        call_command("sqlmigrate", app, name, stdout=said)
        made = re.findall(r'CREATE TABLE "(\w+)"', said.getvalue())
        added = re.findall(
            r'ALTER TABLE "(\w+)" ADD CONSTRAINT (?:(?!NOT VALID)[^;])*'
            r"FOREIGN KEY(?:(?!NOT VALID)[^;])*;",
            said.getvalue(),
        )
        found += [(app, name, table) for table in added if table not in made]

    assert found == []


def test_an_index_that_is_not_made_concurrently_is_found(findings):
    assert findings(("qa", "0021_conversations")) == 1
    assert findings(("qa", "0020_erased_answers")) == 0


def test_every_app_of_ours_with_migrations_is_looked_at():
    ours = {file.parts[-3] for file in settings.BASE_DIR.glob("*/migrations/0001_*.py")}

    assert ours == set(BEFORE_THE_RULE)
