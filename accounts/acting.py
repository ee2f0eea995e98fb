"""The current reader: the user whose rights row-level security applies to a statement.

A web request acts for its user automatically; other code that reads knowledge must use
`acting_for(user)` or `unrestricted("why")`, or else the database raises an error. The
policies are in `kb/migrations`; `accounts.postgresql` sets the reader.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:  # the database's backend is loaded before any model
    from django.contrib.auth.base_user import AbstractBaseUser
    from django.contrib.auth.models import AnonymousUser

Item = TypeVar("Item")

_PREFIX = "nescio:"


class Reader(Protocol):
    """The user or role for whom statements are run."""

    @property
    def label(self) -> bytes:
        """The reader's name as sent to the database: ASCII, at most 63 bytes."""

    @property
    def is_owner(self) -> bool:
        """Whether to use the role that connected instead of the application's role."""


@dataclass(frozen=True, slots=True)
class Acting:
    """A fixed reader; `reason` states why it may read more than one user's rows."""

    label: bytes
    is_owner: bool = False
    reason: str = ""


NOBODY = Acting(f"{_PREFIX}nobody".encode())
# The reader during a sign-in by the identity provider: it can't read any knowledge, and
# the audit names it.
SIGN_IN = Acting(f"{_PREFIX}sign-in".encode())
_UNSAID = Acting(f"{_PREFIX}unsaid".encode())
_reader: ContextVar[Reader] = ContextVar("reader", default=_UNSAID)


def reader() -> Reader:
    return _reader.get()


@contextmanager
def reading_as(chosen: Reader) -> Iterator[None]:
    token = _reader.set(chosen)
    try:
        yield
    finally:
        _reader.reset(token)


def acting_for(
    user: "AbstractBaseUser | AnonymousUser",
) -> AbstractContextManager[None]:
    """Read and write with the rights of `user`, which the database looks up itself."""
    return reading_as(user_reader(user))


def unrestricted(reason: str) -> AbstractContextManager[None]:
    """Read and write all rows within the block: for work done on no user's behalf.

    `tests/accounts/test_doors.py` lists every reason.
    """
    return reading_as(Acting(f"{_PREFIX}everything".encode(), reason=reason))


def as_owner(reason: str) -> AbstractContextManager[None]:
    """Act as the role that connected: for changes of tables, indexes and statistics."""
    return reading_as(Acting(f"{_PREFIX}owner".encode(), is_owner=True, reason=reason))


def user_reader(user: "AbstractBaseUser | AnonymousUser") -> Acting:
    """Return the reader for `user`: `NOBODY` if they are anonymous or inactive."""
    if user.pk is None or not user.is_active:
        return NOBODY
    return Acting(f"{_PREFIX}user:{user.pk}".encode())


def each_as(chosen: Reader, items: Iterator[Item]) -> Iterator[Item]:
    """Yield from `items`, producing each item as the reader `chosen`.

    A `with` in a generator's body would also change the caller's reader between items.
    """
    while True:
        with reading_as(chosen):
            try:
                item = next(items)
            except StopIteration:
                return
        yield item
