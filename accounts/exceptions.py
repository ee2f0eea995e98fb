"""The one base of all errors that a caller can cause or must know about."""

import errno
import math
from collections.abc import Sequence
from typing import Final

from django.db import InterfaceError, OperationalError

_DISK_FULL: Final = "53100"  # PostgreSQL's code


class NescioError(Exception):
    """An error with a stable code, turned into HTTP in one place.

    `code` is for machines and never changes; the message is for people and holds the
    offending value and the remedy. `status` is the HTTP status it becomes; `detail`, if
    any, is what a machine needs besides, ready for JSON; after `retry_seconds`, if any, the
    same request may work.
    """

    code = "error"
    status = 400
    detail: dict[str, str] | None = None
    retry_seconds: int | None = None


def first_of(names: Sequence[str], most: int) -> str:
    """Return the first `most` of names for a message, and how many more there are."""
    others = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + others


def error_envelope(code: str, message: str, detail: object = None) -> dict[str, object]:
    error = {"code": code, "message": message}
    return {"error": error if detail is None else {**error, "detail": detail}}


class NotFoundError(NescioError):
    """What was asked for does not exist, or may not be seen by the asker."""

    code = "not_found"
    status = 404


class ConflictError(NescioError):
    """The row changed since it was read, or is in a state that forbids the action."""

    code = "conflict"
    status = 409


class ForbiddenError(NescioError):
    """The caller's role does not let them do this."""

    code = "permission_denied"
    status = 403


class RoleElsewhereError(ForbiddenError):
    """The caller's role is one in other knowledge bases."""

    code = "role_elsewhere"


class ThrottledError(NescioError):
    """Somebody asks too often; after `retry_seconds` they may again."""

    code = "throttled"
    status = 429

    def __init__(self, message: str, wait: float) -> None:
        super().__init__(message)
        self.retry_seconds = math.ceil(wait)


class UnavailableError(NescioError):
    """A part that is needed is down; the same request may work later."""

    code = "unavailable"
    status = 503
    retry_seconds = 5


class DiskFullError(UnavailableError):
    """There is no space to store anything; nothing was stored."""

    code = "disk_full"
    retry_seconds = 30


def as_unavailable(error: BaseException | None) -> UnavailableError | None:
    """Return the error to report for one of database or disk that may pass."""
    state = getattr(getattr(error, "__cause__", None), "sqlstate", None)
    number = error.errno if isinstance(error, OSError) else None
    if state == _DISK_FULL or number in {errno.ENOSPC, errno.EDQUOT}:
        return DiskFullError("The disk is full; nothing was stored. Try again later.")
    if isinstance(error, OperationalError | InterfaceError):
        return UnavailableError("The database cannot be used now. Try again later.")
    return None


class InvalidCredentialsError(NescioError):
    code = "invalid_credentials"
    status = 401


class LocalSignInOffError(ForbiddenError):
    """Passwords that are kept here count for nothing."""

    code = "local_sign_in_off"


class TokenNotFoundError(NotFoundError):
    code = "token_not_found"
