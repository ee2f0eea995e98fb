"""Every error of the REST interface as {"error": {"code", "message", "detail"?}}.

Internal errors are logged with the request's id; their text is never sent to the
caller.
"""

import logging
import math
import sys
from collections.abc import Iterator
from typing import Any, TypeVar

from django.core.exceptions import DisallowedHost, PermissionDenied, RequestDataTooBig
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBadRequest,
    JsonResponse,
)
from django.template.loader import render_to_string
from django.views import defaults
from rest_framework import exceptions
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import set_rollback

from accounts.authentication import CHALLENGE, HOW_TO_SIGN_IN, ApiTokenAuthentication
from accounts.exceptions import (
    DiskFullError,
    NescioError,
    UnavailableError,
    as_unavailable,
    error_envelope,
)
from accounts.middleware import API_PREFIXES
from accounts.request_ids import current_request_id
from accounts.rest import MAX_REPORTED
from nescio import disk
from nescio.rest import BodyTooLargeError

logger = logging.getLogger(__name__)

_Error = TypeVar("_Error", bound=Exception)

_SAID_BY_STATUS = {
    400: ("bad_request", "The request could not be read."),
    403: ("permission_denied", "You may not do this."),
    404: ("not_found", "There is nothing at this address. Routes have no trailing slash."),
    500: ("internal_error", "Something went wrong; it is logged."),
}  # fmt: skip

_SHOWN_OF_HOST = 255  # the maximum length of a host name

# Packages whose errors can reach a caller, unlike those of tests or studies.
_RAISING = frozenset(
    {
        "accounts",
        "integrations",
        "jobs",
        "kb",
        "nescio",
        "probes",
        "qa",
        "rest_framework",
    }
)


def error_codes() -> dict[str, int]:
    """Return every `error.code` with its HTTP status, from all error classes.

    Every error that a view can raise has been imported together with the view.
    """
    found = {code: status for status, (code, _) in _SAID_BY_STATUS.items()}
    found |= {each.code: each.status for each in _kinds_of(NescioError)}
    found |= {
        each.default_code: each.status_code
        for each in _kinds_of(exceptions.APIException)
    }
    return dict(sorted(found.items()))


def _kinds_of(base: type[_Error]) -> Iterator[type[_Error]]:
    for kind in base.__subclasses__():
        if kind.__module__.partition(".")[0] in _RAISING:
            yield kind
        yield from _kinds_of(kind)


def exception_handler(exception: Exception, context: dict[str, Any]) -> Response | None:
    """Turn an exception into its response; None for one that Django is to log."""
    if passing := _as_unavailable(exception):
        logger.error("The request could not be answered.", exc_info=exception)
        exception = passing
    if isinstance(exception, NescioError):
        response = _from_nescio(exception)
    else:
        if isinstance(exception, Http404):
            exception = exceptions.NotFound(_SAID_BY_STATUS[404][1])
        elif isinstance(exception, PermissionDenied):
            exception = exceptions.PermissionDenied()
        elif isinstance(exception, RequestDataTooBig):
            exception = BodyTooLargeError()
        if not isinstance(exception, exceptions.APIException):
            return None
        response = _from_rest_framework(exception, context.get("request"))
    set_rollback()
    if request := context.get("request"):
        # An error before an event stream starts is plain JSON, whatever the client
        # accepts.
        request.accepted_renderer = JSONRenderer()
        request.accepted_media_type = JSONRenderer.media_type
    return response


def _as_unavailable(error: BaseException | None) -> UnavailableError | None:
    found = as_unavailable(error)
    if isinstance(found, DiskFullError):
        disk.note_refusal()
    return found


def _from_nescio(error: NescioError) -> Response:
    body = error_envelope(error.code, str(error), error.detail)
    response = Response(body, status=error.status)
    if error.retry_seconds is not None:
        response["Retry-After"] = str(error.retry_seconds)
    if error.status == 401:
        response["WWW-Authenticate"] = CHALLENGE
    return response


def _from_rest_framework(
    error: exceptions.APIException, request: Request | None
) -> Response:
    if isinstance(error, exceptions.ValidationError):
        sentences = _sentences(error.detail)
        message = "; ".join(sentences[:MAX_REPORTED])
        if len(sentences) > MAX_REPORTED:
            message += f"; and {len(sentences) - MAX_REPORTED:,} more"
        body = error_envelope("invalid", message, _first(error.detail, MAX_REPORTED))
    else:
        codes = error.get_codes()
        code = codes if isinstance(codes, str) else error.default_code
        said = [*_sentences(error.detail), *_remedy(error, request)]
        body = error_envelope(code, " ".join(said))
    response = Response(body, status=error.status_code)
    if challenge := getattr(error, "auth_header", None):
        response["WWW-Authenticate"] = challenge
    if wait := getattr(error, "wait", None):
        response["Retry-After"] = str(math.ceil(wait))
    return response


def _remedy(error: exceptions.APIException, request: Request | None) -> list[str]:
    """Return what to send, for errors whose own message does not tell."""
    if request is None:
        return []
    if isinstance(error, exceptions.UnsupportedMediaType):
        types = " or ".join(parser.media_type for parser in request.parsers or ())
        return [f"Send the body as {types}, and name it in the header Content-Type."]
    takes_token = any(
        isinstance(each, ApiTokenAuthentication)
        for each in request.authenticators or ()
    )
    return [HOW_TO_SIGN_IN] if error.status_code == 401 and takes_token else []


def _first(detail: object, count: int) -> object:
    """Return a validation error's first `count` sentences, in the same structure."""
    if not isinstance(detail, dict | list | tuple):
        return detail
    kept: list[tuple[object, object]] = []
    for key, value in detail.items() if isinstance(detail, dict) else enumerate(detail):
        if count <= 0:
            break
        kept.append((key, _first(value, count)))
        count -= len(_sentences(value))
    return dict(kept) if isinstance(detail, dict) else [value for _, value in kept]


def _sentences(detail: object, name: str = "") -> list[str]:
    """Flatten a validation error into "field.part: sentence"."""
    if isinstance(detail, dict):
        return [
            sentence
            for key, value in detail.items()
            for sentence in _sentences(value, _join(name, str(key)))
        ]
    if isinstance(detail, list | tuple):
        return [sentence for each in detail for sentence in _sentences(each, name)]
    return [f"{name}: {detail}" if name else str(detail)]


def _join(name: str, key: str) -> str:
    if key == "non_field_errors":
        return name
    return f"{name}.{key}" if name else key


def _plain_error(
    request: HttpRequest, status: int, said: str = ""
) -> HttpResponse | None:
    if not request.path_info.startswith(API_PREFIXES):
        return None
    code, message = _SAID_BY_STATUS[status]
    message = said or message
    detail = {"request_id": current_request_id()} if status >= 500 else None
    return JsonResponse(error_envelope(code, message, detail), status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if isinstance(exception, DisallowedHost):
        return _host_not_allowed(request)
    return _plain_error(request, 400) or defaults.bad_request(request, exception)


def _host_not_allowed(request: HttpRequest) -> HttpResponse:
    """Return an error that names the setting, needed mostly after a change of host."""
    host = request.headers.get("Host", "")[:_SHOWN_OF_HOST]
    said = (
        f"The host “{host}” is not allowed. The setting NESCIO_ALLOWED_HOSTS lists the "
        "allowed ones."
    )
    page = render_to_string("400.html", {"said": said})
    return _plain_error(request, 400, said) or HttpResponseBadRequest(page)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _plain_error(request, 403) or defaults.permission_denied(request, exception)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _plain_error(request, 404) or defaults.page_not_found(request, exception)


def unavailable(request: HttpRequest, error: UnavailableError) -> HttpResponse:
    """Return a 503 outside of REST framework: plain text, or JSON for REST paths."""
    response: HttpResponse = (
        JsonResponse(error_envelope(error.code, str(error), error.detail))
        if request.path_info.startswith(API_PREFIXES)
        else HttpResponse(str(error), content_type="text/plain; charset=utf-8")
    )
    response.status_code = error.status
    response["Retry-After"] = str(error.retry_seconds)
    return response


def server_error(request: HttpRequest) -> HttpResponse:
    if error := _as_unavailable(sys.exception()):
        return unavailable(request, error)
    return _plain_error(request, 500) or defaults.server_error(request)
