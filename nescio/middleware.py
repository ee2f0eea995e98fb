"""A name for each request, in its response and log lines, and the Content-Security-Policy."""

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
    """Takes the caller's X-Request-ID where it is plain, else makes one."""

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
    """Django's, which refuses a host name that is not listed, but for the metrics.

    Prometheus reads each process by its own address, which is not known before; it gets
    numbers, by its token, and no link.
    """

    def process_request(
        self, request: HttpRequest
    ) -> HttpResponsePermanentRedirect | None:
        return None if request.path == "/metrics" else super().process_request(request)


class ErrorPageMiddleware:
    """Shows an error of ours that a page did not put into words itself."""

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
    """Leaves a caller's mistake one line: Django adds a traceback to a 403 and a 400.

    A health check's 503 is its answer and no error: what fails logs itself.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        request = getattr(record, "request", None)
        if getattr(request, "path", "").startswith("/healthz"):
            return False
        if getattr(record, "status_code", 500) < 500:
            record.exc_info = record.exc_text = None
        return True


class RequestIdFilter(logging.Filter):
    """Names a line's request, also where it is logged behind the request's or job's end.

    There Django says that it answered by an error, and Celery that a job failed.
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
    """One JSON object a line; the traceback is in `exception`."""

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
    """Return the setting `LOGGING`: `line` or `json` each, with the request's id."""
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
        # They say of every request that it was sent, or that a session began and ended.
        "loggers": {name: {"level": "WARNING"} for name in ("httpx2", "mcp")},
    }


class RoomMiddleware:
    """Answers 503 to what would write while there is no room on the disk."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method not in _READING and (problem := disk.problem()):
            # It imports the REST framework, whose settings name this module's.
            from nescio.exception_handler import unavailable  # noqa: PLC0415

            return unavailable(request, DiskFullError(problem))
        return self._get_response(request)


# Content-Security-Policy: strict for our pages, looser by path for what needs more.


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
