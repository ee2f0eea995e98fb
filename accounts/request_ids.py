"""Request ids in log lines, from the HTTP request to the jobs that it enqueues."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

NONE = "-"
_NAMED = "nescio_request_id"  # an attribute of exceptions

_current: ContextVar[str] = ContextVar("request_id", default=NONE)


def current_request_id() -> str:
    return _current.get()


@contextmanager
def named(request_id: str) -> Iterator[None]:
    """Set the request id within the block, and on an error that leaves it.

    The error is logged outside of the block.
    """
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
