"""What names a request in log lines, from HTTP to the job that it enqueued."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

NONE = "-"
_NAMED = "nescio_request_id"  # of an error

_current: ContextVar[str] = ContextVar("request_id", default=NONE)


def current_request_id() -> str:
    return _current.get()


@contextmanager
def named(request_id: str) -> Iterator[None]:
    """Name what is logged meanwhile, and an error that leaves it: it is logged outside."""
    token = _current.set(request_id)
    try:
        yield
    except Exception as error:
        vars(error).setdefault(_NAMED, request_id)
        raise
    finally:
        _current.reset(token)


def request_id_of(error: BaseException | None) -> str:
    return str(vars(error).get(_NAMED, NONE)) if error else NONE
