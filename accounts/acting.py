"""For whom code reads: what row-level security holds every statement against.

A web request acts for its user by itself; whatever else reads knowledge says
`acting_for(user)` or `unrestricted("why")`. Code that says nothing gets an error of the
database. The policies are in `kb/migrations`; `accounts.postgresql` sets the reader.
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
    """For whom statements are run."""

    @property
    def label(self) -> bytes:
        """What is sent to the database, ASCII; at most 63 bytes."""

    @property
    def is_owner(self) -> bool:
        """Whether as the role that signed in, instead of as the application's."""


@dataclass(frozen=True, slots=True)
class Acting:
    """A reader who stays the same; `reason` says why more than one user's is read."""

    label: bytes
    is_owner: bool = False
    reason: str = ""


NOBODY = Acting(f"{_PREFIX}nobody".encode())
# Who is signed in by the identity provider: it may read no knowledge, and the audit names it.
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
    """Read and write what `user` may, which the database looks up itself."""
    return reading_as(user_reader(user))


def unrestricted(reason: str) -> AbstractContextManager[None]:
    """Read and write whatever there is within the block: for work that is nobody's.

    `tests/accounts/test_doors.py` lists every reason.
    """
    return reading_as(Acting(f"{_PREFIX}everything".encode(), reason=reason))


def as_owner(reason: str) -> AbstractContextManager[None]:
    """Act as the role that signed in: for changes of tables, indexes and statistics."""
    return reading_as(Acting(f"{_PREFIX}owner".encode(), is_owner=True, reason=reason))


def user_reader(user: "AbstractBaseUser | AnonymousUser") -> Acting:
    """Return the reader that `user` is: nobody, if not signed in or not active."""
    if user.pk is None or not user.is_active:
        return NOBODY
    return Acting(f"{_PREFIX}user:{user.pk}".encode())


def each_as(chosen: Reader, items: Iterator[Item]) -> Iterator[Item]:
    """Yield what `items` yields, each made for `chosen`, whatever reader runs the loop.

    A `with` around a generator's body would change its caller's reader between two items.
    """
    while True:
        with reading_as(chosen):
            try:
                item = next(items)
            except StopIteration:
                return
        yield item
