"""Middleware and logging: request ids, hosts, error pages, full disks, CSP."""

import json
import logging
import re
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from csp.constants import NONE, SELF, UNSAFE_EVAL, UNSAFE_INLINE
from csp.middleware import CSPMiddleware, PolicyParts
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponsePermanentRedirect,
)
from django.middleware.common import CommonMiddleware
from django.shortcuts import render

from accounts.exceptions import DiskFullError, NescioError
from accounts.request_ids import NONE as NO_REQUEST
from accounts.request_ids import current_request_id, named, request_id_of
from nescio import disk

HEADER = "X-Request-ID"
_IN_META = "nescio.request_id"

_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestIdMiddleware:
    """Uses the caller's X-Request-ID if it is well-formed; otherwise generates one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get(HEADER, "")
        name = given if _PLAIN.fullmatch(given) else uuid.uuid4().hex
        request.META[_IN_META] = name
        with named(name):
            response = self._get_response(request)
        response[HEADER] = name
        return response


class HostMiddleware(CommonMiddleware):
    """Django's middleware, which refuses unlisted host names, except for the metrics.

    Prometheus reads each container by its own address, which can't be listed in
    advance. The metrics require a token and contain no links, so this is safe.
    """

    def process_request(
        self, request: HttpRequest
    ) -> HttpResponsePermanentRedirect | None:
        return None if request.path == "/metrics" else super().process_request(request)


class ErrorPageMiddleware:
    """Shows an error page for a `NescioError` that a view did not handle."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self._get_response(request)

    def process_exception(
        self, request: HttpRequest, exception: Exception
    ) -> HttpResponse | None:
        if not isinstance(exception, NescioError):
            return None
        page = render(
            request, "error.html", {"message": str(exception)}, status=exception.status
        )
        if exception.retry_seconds is not None:
            page["Retry-After"] = str(exception.retry_seconds)
        return page


class ResponseFilter(logging.Filter):
    """Logs a client error as one line; Django adds a traceback to a 403 and a 400.

    A health check's 503 is a regular response and not logged; the failure itself is.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        request = getattr(record, "request", None)
        if getattr(request, "path", "").startswith("/healthz"):
            return False
        if getattr(record, "status_code", 500) < 500:
            record.exc_info = record.exc_text = None
        return True


class RequestIdFilter(logging.Filter):
    """Adds the request id to a log record, also after the request or job has ended.

    Django logs an error response, and Celery a failed job, only after the end.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        found = current_request_id()
        if found == NO_REQUEST:
            meta = getattr(getattr(record, "request", None), "META", {})
            error = record.exc_info[1] if record.exc_info else None
            found = meta.get(_IN_META) or request_id_of(error)
        record.request_id = found
        return True


class JsonFormatter(logging.Formatter):
    """Formats each record as one line of JSON; the traceback is in `exception`."""

    def format(self, record: logging.LogRecord) -> str:
        shown = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "request_id": getattr(record, "request_id", NO_REQUEST),
            "process": record.process,
            "message": record.getMessage(),
        }
        if record.exc_info:
            shown["exception"] = self.formatException(record.exc_info)
        return json.dumps(shown, ensure_ascii=False)


def logging_to_stderr(level: str, form: str = "line") -> dict[str, Any]:
    """Return the setting `LOGGING`, with request ids; `form` is "line" or "json"."""
    line = "%(asctime)s %(levelname)s %(name)s [%(request_id)s]: %(message)s"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"format": line}, "json": {"()": JsonFormatter}},
        "filters": {
            "request_id": {"()": RequestIdFilter},
            "response": {"()": ResponseFilter},
        },
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": form,
                "filters": ["request_id", "response"],
            }
        },
        "root": {"handlers": ["stderr"], "level": level},
        # They log every sent request, and the start and end of every session.
        "loggers": {name: {"level": "WARNING"} for name in ("httpx2", "mcp")},
    }


class RoomMiddleware:
    """Answers 503 to requests that would write while the disk is full."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method not in _READING and (problem := disk.problem()):
            # It imports REST framework, whose settings need this module.
            from nescio.exception_handler import unavailable  # noqa: PLC0415

            return unavailable(request, DiskFullError(problem))
        return self._get_response(request)


# Content-Security-Policy: strict for our pages, looser for paths that need more.


STRICT: Mapping[str, list[str]] = {
    "default-src": [NONE],
    "script-src": [SELF],
    "style-src": [SELF],
    "img-src": [SELF],
    "connect-src": [SELF],
    "form-action": [SELF],
    "base-uri": [NONE],
    "frame-ancestors": [NONE],
}
_BY_PREFIX: tuple[tuple[str, Mapping[str, list[str]]], ...] = (
    (
        "/admin/",
        {
            "script-src": [SELF, UNSAFE_EVAL],
            "style-src": [SELF, UNSAFE_INLINE],
            "img-src": [SELF, "data:"],
            "font-src": [SELF],
        },
    ),
    ("/api/v1/docs", {"style-src": [SELF, UNSAFE_INLINE], "img-src": [SELF, "data:"]}),
)


class ContentSecurityMiddleware(CSPMiddleware):
    def get_policy_parts(
        self,
        request: HttpRequest,
        response: HttpResponseBase,
        report_only: bool = False,
    ) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        for prefix, replacements in _BY_PREFIX:
            if request.path_info.startswith(prefix):
                parts.replace = {**replacements, **(parts.replace or {})}
        return parts
