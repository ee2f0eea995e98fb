"""The one base of all errors that a caller can cause or must know about."""


class NescioError(Exception):
    """An error with a stable code, turned into HTTP in one place.

    `code` is for machines and never changes; the message is for people and holds the
    offending value and the remedy. `status` is the HTTP status it becomes; `detail`, if
    any, is what a machine needs besides, ready for JSON.
    """

    code = "error"
    status = 400
    detail: dict[str, str] | None = None


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


class UnavailableError(NescioError):
    """A part that is needed is down; the same request may work later."""

    code = "unavailable"
    status = 503
    retry_seconds = 5


class InvalidCredentialsError(NescioError):
    """No active user has this name and password."""

    code = "invalid_credentials"
    status = 401


class TokenNotFoundError(NotFoundError):
    """There is no such token, or it is another user's."""

    code = "token_not_found"
