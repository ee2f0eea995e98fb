"""The product's WSGI application, telling in a header what its database calls took.

    Server-Timing: sql;dur=6.1;desc="13"

Every statement and every commit of the request is counted; waiting for the database is
database time.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from nescio.wsgi import application as product


class Meter:
    """Adds up the time and number of database calls of one request."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls = 0

    def __call__(self, execute: Callable[..., Any], *arguments: Any) -> Any:
        """Time one statement, as `connection.execute_wrapper` wants it."""
        return self.time(execute, *arguments)

    def time(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Return what `call` returns and add how long it took."""
        begun = time.perf_counter()
        try:
            return call(*arguments)
        finally:
            self.seconds += time.perf_counter() - begun
            self.calls += 1


def application(
    environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    """Answer as the product does, with one more header."""
    meter = Meter()

    def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
        told = f'sql;dur={meter.seconds * 1000:.3f};desc="{meter.calls}"'
        return start_response(status, [*headers, ("Server-Timing", told)], *rest)

    commit = BaseDatabaseWrapper._commit  # type: ignore[attr-defined]  # not in the stubs
    connection._commit = lambda: meter.time(commit, connection)  # type: ignore[attr-defined]  # not in the stubs
    with connection.execute_wrapper(meter):
        return product(environ, start)
