"""What names a request in log lines, from HTTP to the job that it enqueued."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

NONE = "-"

_current: ContextVar[str] = ContextVar("request_id", default=NONE)


def current_request_id() -> str:
    return _current.get()


@contextmanager
def named(request_id: str) -> Iterator[None]:
    token = _current.set(request_id)
    try:
        yield
    finally:
        _current.reset(token)
