import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder


def test_a_database_of_before_the_first_version_is_left_alone_with_a_remedy(db):
    MigrationRecorder(connection).record_applied("accounts", "0001_add_api_token")

    with pytest.raises(CommandError, match="restore_knowledge"):
        call_command("migrate", verbosity=0)


def test_a_database_that_is_up_to_date_stays_so(db):
    call_command("migrate", verbosity=0)
