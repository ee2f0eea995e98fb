"""Migrations run while people ask: none may lock a table for as long as it is large.

The linter reads the SQL of each migration. Those that an app begins with make its tables and
are left out by their numbers, which are never raised: fix what it finds, or add
`IgnoreMigration()` to the migration with the reason why its table is always small.
"""

import io
import re
import shutil

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db.migrations.loader import MigrationLoader
from django_migration_linter import MigrationLinter

from accounts.acting import as_owner

THE_BEGINNING = {
    "accounts": 2,
    "integrations": 1,
    "jobs": 1,
    "kb": 1,
    "probes": 1,
    "qa": 1,
}
LENGTHENED = {("qa", "0002_self_calibrated_answers")}
"""That only lengthen a varchar, which writes to the catalogue alone: the linter can't tell it
from a change of type that rewrites each row."""
_LATER = """
from django.db import migrations, models

class Migration(migrations.Migration):
    dependencies = [("jobs", "0001_initial")]
    operations = [migrations.{operation}]
"""
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


def test_no_migration_since_the_beginning_locks_a_large_table(findings):
    ours = MigrationLoader(None).disk_migrations
    new = [
        (app, name)
        for app, name in ours
        if app in THE_BEGINNING
        and int(name[:4]) > THE_BEGINNING[app]
        and (app, name) not in LENGTHENED
    ]

    assert findings(*new) == 0


@pytest.mark.django_db(transaction=True)
def test_no_migration_since_the_beginning_reads_all_rows_for_a_foreign_key():
    """As an `AlterField` does that only drops the field's index."""
    found = []
    for app, name in MigrationLoader(None).disk_migrations:
        if app not in THE_BEGINNING or int(name[:4]) <= THE_BEGINNING[app]:
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


@pytest.mark.parametrize(
    ("operation", "count"),
    [
        ('AddIndex("job", models.Index(fields=["worker"], name="job_by_worker"))', 1),
        ('AddField("job", "ended_by", models.TextField(null=True))', 0),
    ],
)
def test_an_index_that_is_not_made_concurrently_is_found(
    findings, settings, tmp_path, monkeypatch, operation, count
):
    package = f"jobs_later_{count}"
    shutil.copytree(settings.BASE_DIR / "jobs" / "migrations", tmp_path / package)
    later = tmp_path / package / "0002_later.py"
    later.write_text(_LATER.format(operation=operation))
    monkeypatch.syspath_prepend(tmp_path)
    settings.MIGRATION_MODULES = {**settings.MIGRATION_MODULES, "jobs": package}

    assert findings(("jobs", "0002_later")) == count


def test_every_app_of_ours_with_migrations_is_looked_at():
    ours = {file.parts[-3] for file in settings.BASE_DIR.glob("*/migrations/0001_*.py")}

    assert ours == set(THE_BEGINNING)
