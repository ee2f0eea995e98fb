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


@pytest.mark.django_db(transaction=True)
def test_readers_never_queue_up_behind_a_migration_that_waits_for_a_table():
    call_command("migrate", "qa", "0024", verbosity=0)  # to be applied again
    reading = connections.create_connection("default")
    try:
        with reading.cursor() as other:
            other.execute("BEGIN")
            other.execute("LOCK TABLE qa_answer IN ACCESS SHARE MODE")
            with pytest.raises(CommandError, match="--lock-seconds"):
                call_command("migrate", "qa", verbosity=0, lock_seconds=0.2)
    finally:
        reading.close()
        call_command("migrate", "qa", verbosity=0)

    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("0",)
        cursor.execute("SELECT scope FROM qa_answer")
