"""Runs a request's statements for its user; heads of the REST interface's answers."""

from collections.abc import Callable

from django.http import (
    FileResponse,
    HttpRequest,
    HttpResponseBase,
    StreamingHttpResponse,
)
from django.utils.functional import SimpleLazyObject

from accounts.acting import NOBODY, Acting, each_as, reading_as, user_reader
from accounts.people import AnyUser
from accounts.throttles import COUNTED

# What machines ask: errors are JSON here, and no cache keeps an answer.
API_PREFIXES = (
    "/api/", "/v1/", "/dify/", "/mcp", "/metrics", "/slack/", "/teams/", "/widget/",
)  # fmt: skip


class RequestReader:
    """The user of a request, and nobody until it is known who that is.

    Neither session nor token is read for this: a page that asks nothing about its user
    costs nothing, and reads nothing.
    """

    is_owner = False

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._of_session = request.user
        self._lazy: object = SimpleLazyObject(self._load)
        self._user: AnyUser | None = None
        self._reader: Acting = NOBODY
        request.user = self._lazy  # type: ignore[assignment]  # stands for a user

    @property
    def label(self) -> bytes:
        user = self._request.user
        if user is self._lazy:
            return self._reader.label
        if user is not self._user:
            self._user, self._reader = user, user_reader(user)
        return self._reader.label

    def _load(self) -> AnyUser:
        self._reader = user_reader(self._of_session)  # reads the session
        return self._of_session


class ReaderMiddleware:
    """Runs a request, and what it streams afterwards, for its user."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        chosen = RequestReader(request)
        with reading_as(chosen):
            response = self._get_response(request)
        if isinstance(response, StreamingHttpResponse) and not isinstance(
            response, FileResponse
        ):
            response.streaming_content = each_as(chosen, iter(response))
        return response


class ApiHeadersMiddleware:
    """What every answer of the REST interface carries, whichever view made it.

    No cache keeps it, for it depends on who asks; the caller's rate is said where it was
    counted.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self._get_response(request)
        if request.path_info.startswith(API_PREFIXES):
            response.headers["Cache-Control"] = "no-store"
            if counted := request.META.get(COUNTED):
                for name, value in counted.headers.items():
                    response.headers[name] = value
        return response
