"""The product's WSGI application with a header that reports its database time.

    Server-Timing: sql;dur=6.1;desc="13"

The header has the milliseconds and the number of all statements and commits of the
request.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from nescio.wsgi import application as product


class Meter:
    """The total time and number of database calls of one request."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls = 0

    def __call__(self, execute: Callable[..., Any], *arguments: Any) -> Any:
        """Time one statement; the signature is that of a database execute wrapper."""
        return self.time(execute, *arguments)

    def time(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call `call`, add the time it takes, and return its result."""
        begun = time.perf_counter()
        try:
            return call(*arguments)
        finally:
            self.seconds += time.perf_counter() - begun
            self.calls += 1


def application(
    environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    """Serve the request as the product does, with a `Server-Timing` header."""
    meter = Meter()

    def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
        told = f'sql;dur={meter.seconds * 1000:.3f};desc="{meter.calls}"'
        return start_response(status, [*headers, ("Server-Timing", told)], *rest)

    commit = BaseDatabaseWrapper._commit  # type: ignore[attr-defined]  # not in the stubs
    connection._commit = lambda: meter.time(commit, connection)  # type: ignore[attr-defined]  # not in the stubs
    with connection.execute_wrapper(meter):
        return product(environ, start)
