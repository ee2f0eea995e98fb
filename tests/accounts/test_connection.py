"""A connection that breaks before a statement is a database that can't be used now."""

import os
import socket

import pytest
from django.db import OperationalError, connection

from accounts.acting import as_owner


@pytest.mark.django_db(transaction=True)
def test_a_lost_connection_is_an_operational_error_each_time():
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        with socket.socket(fileno=os.dup(connection.connection.fileno())) as lost:
            lost.shutdown(socket.SHUT_RDWR)

        # Telling the database who reads is what fails, the second time at sending it.
        for _ in range(2):
            with as_owner("test"), pytest.raises(OperationalError):
                cursor.execute("SELECT 1")
    connection.close()

    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
