import io

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.db.migrations.recorder import MigrationRecorder


def test_a_database_of_before_the_first_version_is_left_alone_with_a_remedy(db):
    MigrationRecorder(connection).record_applied("accounts", "0001_add_api_token")

    with pytest.raises(CommandError, match="restore_knowledge"):
        call_command("migrate", verbosity=0)


def test_a_database_that_is_up_to_date_stays_so(db):
    call_command("migrate", verbosity=0)


def test_a_database_that_has_all_that_was_replaced_only_has_that_recorded(db):
    new = [("integrations", "0001_initial"), ("accounts", "0002_knowledge_roles")]
    recorder = MigrationRecorder(connection)
    for key in new:
        recorder.record_unapplied(*key)
    said = io.StringIO()

    call_command("migrate", stdout=said, no_color=True)

    assert "No migrations to apply" in said.getvalue()
    assert recorder.applied_migrations().keys() >= set(new)


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param({"name__startswith": "0001"}, id="no more than the first"),
        pytest.param({"name__lt": "0025"}, id="some"),
        pytest.param({"name__gte": "0003"}, id="all but one"),
    ],
)
def test_a_database_between_migrations_that_one_replaces_is_left_alone(db, kept):
    MigrationRecorder.Migration.objects.filter(app="kb").exclude(**kept).delete()

    with pytest.raises(CommandError, match="last commit before"):
        call_command("migrate", verbosity=0)


@pytest.mark.django_db(transaction=True)
def test_readers_never_queue_up_behind_a_migration_that_waits_for_a_table():
    reading = connections.create_connection("default")
    try:
        with reading.cursor() as other:
            other.execute("BEGIN")
            other.execute("LOCK TABLE accounts_knowledgerole IN ACCESS SHARE MODE")
            with pytest.raises(CommandError, match="--lock-seconds"):
                call_command(
                    "migrate", "accounts", "0001", verbosity=0, lock_seconds=0.2
                )
    finally:
        reading.close()

    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("0",)
        cursor.execute("SELECT role FROM accounts_knowledgerole")
