"""Middleware that sets the reader of a request, and the headers of REST responses."""

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

# Addresses for programs: errors are JSON here, and responses are not cached.
API_PREFIXES = (
    "/api/", "/v1/", "/dify/", "/mcp", "/metrics", "/slack/", "/teams/", "/widget/",
)  # fmt: skip


class RequestReader:
    """The reader of a request: its user, or nobody until the user is known.

    It reads neither session nor token by itself, so that a page that does not need its
    user runs no query for it, and can't read any knowledge.
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
    """Runs a request, and the response that it streams, as its user."""

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
    """Sets the headers of every REST response, whichever view returned it.

    Responses depend on the caller, so they must not be cached; those that were counted
    for throttling carry the caller's rate.
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
