"""The Model Context Protocol over streamable HTTP, at /mcp.

No session is kept, so that any process can answer any request.
"""

import io
import json
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from asgiref.sync import async_to_sync, sync_to_async
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve
from drf_spectacular.utils import extend_schema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from accounts.delegation import DelegatingTokenAuthentication
from accounts.rest import KnownQueryView
from accounts.roles import IsAgent
from jobs.api import EventStreamRenderer

if TYPE_CHECKING:
    from integrations.mcp.tools import Reply, Rest

# What the inner request keeps of the outer one: who asks, and from where.
_KEPT = (
    "HTTP_AUTHORIZATION", "HTTP_X_NESCIO_ON_BEHALF_OF", "HTTP_HOST", "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO",
    "REMOTE_ADDR", "SERVER_NAME", "SERVER_PORT", "SERVER_PROTOCOL", "wsgi.url_scheme",
)  # fmt: skip


class McpView(KnownQueryView):
    """Answers one message of the protocol; tool calls become REST requests."""

    # No cookie authentication: a web page must not call tools as the signed-in user.
    authentication_classes = [DelegatingTokenAuthentication]
    permission_classes = [IsAgent]
    throttle_scope = "user"
    takes_idempotency_key = False  # the protocol numbers its messages itself
    renderer_classes = [JSONRenderer, EventStreamRenderer]

    @extend_schema(exclude=True)
    def post(self, request: Request) -> HttpResponse:
        """Answer one message of the Model Context Protocol."""
        return async_to_sync(_exchange)(request._request, request._request.body)


async def _exchange(request: HttpRequest, body: bytes) -> HttpResponse:
    """Let the SDK answer one request."""
    # The import takes half a second, which workers and commands need not pay.
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager  # noqa: PLC0415

    from integrations.mcp.tools import make_server  # noqa: PLC0415  # with the SDK

    server = make_server(_within(request))
    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
    response = HttpResponse()
    inbox = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> MutableMapping[str, Any]:
        return inbox.pop() if inbox else {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            response.status_code = message["status"]
            for name, value in message["headers"]:
                response[name.decode("latin-1")] = value.decode("latin-1")
        else:
            response.write(message.get("body", b""))

    scope = {
        "type": "http",
        "method": request.method,
        "path": request.path,
        "query_string": b"",
        "headers": [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in request.headers.items()
        ],
    }
    async with manager.run():
        await manager.handle_request(scope, receive, send)
    return response


def _within(request: HttpRequest) -> "Rest":
    """Return a function that makes REST requests as the caller of `request`.

    They run in that request's thread, with the authentication, role, rate limit,
    entitlement and errors of the REST interface.
    """

    def make(method: str, address: str, body: dict[str, Any]) -> "Reply":
        content = json.dumps(body).encode() if method != "GET" else b""
        made = WSGIRequest(
            {
                **{name: request.META[name] for name in _KEPT if name in request.META},
                "REQUEST_METHOD": method,
                "PATH_INFO": address,
                "CONTENT_TYPE": "application/json",
                "CONTENT_LENGTH": str(len(content)),
                "HTTP_ACCEPT": "application/json",
                "wsgi.input": io.BytesIO(content),
            }
        )
        try:
            found = resolve(address)
        except Resolver404:  # an argument is not a number or an id
            message = f"There is nothing at {address[:120]}."
            return 404, {"error": {"code": "not_found", "message": message}}
        made.resolver_match = found
        response = found.func(made, *found.args, **found.kwargs)
        return response.status_code, json.loads(response.render().content)

    return sync_to_async(make, thread_sensitive=True)
