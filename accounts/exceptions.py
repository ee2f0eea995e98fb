"""The base class of all errors that a caller can cause or must know about."""

import errno
import math
from collections.abc import Sequence
from typing import Final

from django.db import InterfaceError, OperationalError

_DISK_FULL: Final = "53100"  # PostgreSQL's code


class NescioError(Exception):
    """An error with a stable code, turned into an HTTP response in one place.

    `code` is for machines and never changes; the message is for people and holds the
    offending value and the remedy. `status` is the HTTP status. `detail`, if any, holds
    further values for machines, ready for JSON. After `retry_seconds`, if any, the same
    request may succeed.
    """

    code = "error"
    status = 400
    detail: dict[str, str] | None = None
    retry_seconds: int | None = None


def first_of(names: Sequence[str], most: int) -> str:
    """Return the first `most` names for a message, with the number of others."""
    others = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + others


def error_envelope(code: str, message: str, detail: object = None) -> dict[str, object]:
    error = {"code": code, "message": message}
    return {"error": error if detail is None else {**error, "detail": detail}}


class NotFoundError(NescioError):
    """The row does not exist, or the caller may not see it."""

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
    """The caller has the role only in other knowledge bases."""

    code = "role_elsewhere"


class ThrottledError(NescioError):
    """The caller sent too many requests; after `retry_seconds` they may try again."""

    code = "throttled"
    status = 429

    def __init__(self, message: str, wait: float) -> None:
        super().__init__(message)
        self.retry_seconds = math.ceil(wait)


class UnavailableError(NescioError):
    """A required service is down; the same request may succeed later."""

    code = "unavailable"
    status = 503
    retry_seconds = 5


class DiskFullError(UnavailableError):
    """The disk has no space left; nothing was stored."""

    code = "disk_full"
    retry_seconds = 30


def as_unavailable(error: BaseException | None) -> UnavailableError | None:
    """Return the error to report for a temporary failure of the database or disk."""
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
    """Sign-in with a local password is switched off."""

    code = "local_sign_in_off"


class TokenNotFoundError(NotFoundError):
    code = "token_not_found"
