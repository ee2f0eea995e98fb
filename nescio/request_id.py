"""A name for each request, in its response and on every log line written meanwhile."""

import logging
import re
import uuid
from collections.abc import Callable
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponse

HEADER = "X-Request-ID"

_current: ContextVar[str] = ContextVar("request_id", default="-")
_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,64}")


def current_request_id() -> str:
    """Return the name of the request in progress, "-" outside of one."""
    return _current.get()


class RequestIdMiddleware:
    """Takes the caller's X-Request-ID where it is plain, else makes one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request under its name."""
        given = request.headers.get(HEADER, "")
        name = given if _PLAIN.fullmatch(given) else uuid.uuid4().hex
        token = _current.set(name)
        try:
            response = self._get_response(request)
        finally:
            _current.reset(token)
        response[HEADER] = name
        return response


class RequestIdFilter(logging.Filter):
    """Puts the request's name on each record."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record through, named."""
        record.request_id = current_request_id()
        return True
