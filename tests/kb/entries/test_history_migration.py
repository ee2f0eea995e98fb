"""The history of before the upgrade is kept and made whole."""

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from accounts.acting import as_owner
from kb.models import Entry
from tests.factories import make_curator, make_entry

BEFORE = [("kb", "0006_keep_half_precision_vectors")]


def migrate(targets) -> None:
    with as_owner("tests"):
        MigrationExecutor(connection).migrate(targets)


@pytest.fixture
def newest_schema(transactional_db):
    """Leave the schema as it was found, whatever the test does."""
    leaves = MigrationExecutor(connection).loader.graph.leaf_nodes()
    yield
    migrate(leaves)


def test_an_upgrade_completes_the_history(newest_schema):
    entry = make_entry("First.")
    leaves = MigrationExecutor(connection).loader.graph.leaf_nodes()
    migrate(BEFORE)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE kb_entry SET text = 'By hand.' WHERE id = %s", [entry.pk]
        )
    migrate(leaves)

    first, second = Entry.objects.get().revisions.order_by("number")

    assert (first.verified_by, first.audience) == (make_curator(), entry.audience)
    assert (second.text, second.author) == ("By hand.", None)
    assert second.database_user == connection.settings_dict["USER"]
