"""A connection that breaks before a statement is a database that can't be used now."""

import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

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


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_after_the_database_ended_all_connections_the_next_request_gets_one():
    count = 7
    together = threading.Barrier(count)

    def hold_one(_):
        try:
            with as_owner("test"), connection.cursor():
                together.wait()
                return connection.connection.info.backend_pid
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as threads:
        idle = list(threads.map(hold_one, range(count)))
    with as_owner("test"), connection.cursor() as cursor:
        own = connection.connection.info.backend_pid
        ended = [pid for pid in idle if pid != own]
        cursor.execute("SELECT pg_terminate_backend(unnest(%s), 5000)", [ended])
        with ThreadPoolExecutor(1) as threads:
            together = threading.Barrier(1)
            began = time.monotonic()
            alive = threads.submit(hold_one, 0).result()

    # The pool takes connections back in its own time, so the seventh may be a new one.
    assert len(ended) >= count - 1
    assert alive not in ended
    assert time.monotonic() - began < 10  # as long as the pool lets a request wait
