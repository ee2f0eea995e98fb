"""The OpenAPI description, with our token schemes and the errors of every operation."""

import re
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.utils import translation
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.renderers import (
    OpenApiJsonRenderer,
    OpenApiJsonRenderer2,
    OpenApiYamlRenderer,
    OpenApiYamlRenderer2,
)
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.permissions import AllowAny
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import idempotency
from accounts.delegation import HEADER, DelegatingTokenAuthentication
from accounts.roles import HasRole, Role
from nescio.exception_handler import error_codes

_ENVELOPE = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {
                    "anyOf": [
                        {"$ref": "#/components/schemas/ErrorCode"},
                        {"type": "string"},
                    ],
                    "description": "Stable, for machines; later versions add codes.",
                },
                "message": {"type": "string", "description": "For people."},
                "detail": {"description": "Further values, such as messages by field."},
            },
        }
    },
}
_HEADERS = {
    name: {"description": said, "schema": {"type": "integer", "minimum": 0}}
    for name, said in {
        "Retry-After": "Seconds after which to try again.",
        "RateLimit-Limit": "How many requests of this kind you may send in a minute, or "
        "whatever time the operator set.",
        "RateLimit-Remaining": "How many of them are left.",
        "RateLimit-Reset": "Seconds until all of them are available again.",
    }.items()
}


def _headers(*names: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


_RETRY_AFTER = _headers("Retry-After")
_RATE = _headers("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
_ERRORS: dict[str, dict[str, Any]] = {
    "400": {"description": "The request is invalid; the message says why."},
    "401": {
        "description": "Not signed in, or the token is unknown or revoked "
        "(`authentication_failed`), or expired (`token_expired`).",
        "headers": {"WWW-Authenticate": {"schema": {"type": "string"}}},
    },
    "403": {"description": "Your role may not do this."},
    "404": {"description": "It does not exist, or you may not see it."},
    "406": {"description": "None of the accepted media types is offered."},
    "409": {"description": "The row changed meanwhile, or its state forbids this."},
    "413": {"description": "The body is too large."},
    "415": {"description": "The body is not application/json."},
    "422": {"description": "The idempotency key was used for another request."},
    "429": {"description": "Too many requests.", "headers": _RETRY_AFTER | _RATE},
    "503": {
        "description": "A required service is down; nothing is lost.",
        "headers": _RETRY_AFTER,
    },
}
_WRITES = frozenset({"post", "put", "patch", "delete"})
_ERROR = {"$ref": "#/components/schemas/Error"}
# A temporary key for an operation's extended error schema, removed by
# `document_errors`.
_OWN_ERROR = "x-own-error"
_WITH_BODY = ("413", "415")
# 400: an unknown query parameter.
_ALWAYS = ("400", "401", "403", "406", "429", "503")


_IDEMPOTENCY_KEY = OpenApiParameter(
    idempotency.HEADER,
    {"type": "string", "pattern": f"^{idempotency.KEY_PATTERN}$"},
    OpenApiParameter.HEADER,
    description="A request sent again with the same key is executed once: for 24 hours "
    "the first reply is returned, with `Idempotency-Replayed: true`. 422 "
    "`idempotency_key_reused` for another request, 409 `idempotency_key_in_use` while "
    "the first is in progress. Replies with 5xx and 429 are not kept.",
)

_VERBS = {"retrieve": "read", "partial_update": "change", "destroy": "delete"}


ON_BEHALF_OF = OpenApiParameter(
    HEADER,
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The user for whom a token that may act for others sends this; names "
    "that are not ASCII are percent-encoded.",
)


class OperationSchema(AutoSchema):
    """Names the operations of a view set by the resource and the action.

    Operations open to agents also accept a token that acts for another user.
    """

    def get_override_parameters(self) -> list[Any]:
        takes_token = any(
            isinstance(each, DelegatingTokenAuthentication)
            for each in self.view.get_authenticators()
        )
        wanted = [
            each.wanted(self.method)
            for each in self.view.get_permissions()
            if isinstance(each, HasRole)
        ]
        for_others = takes_token and wanted == [Role.AGENT]
        found = [ON_BEHALF_OF] if for_others else []
        takes_key = getattr(self.view, "takes_idempotency_key", False)
        # Keys belong to a signed-in caller.
        if self.method == "POST" and takes_key and self.get_auth():
            found.append(_IDEMPOTENCY_KEY)
        return found

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        operation: dict[str, Any] | None = super().get_operation(*args, **kwargs)
        more = getattr(self.view, "more_in_errors", None)
        if operation and more:
            operation[_OWN_ERROR] = {"allOf": [_ERROR, more]}
        return operation

    def _get_response_for_code(
        self, serializer: Any, *args: Any, **kwargs: Any
    ) -> dict[str, Any]:
        """Accept a text in place of a serializer, as the description of the status."""
        if isinstance(serializer, str):
            serializer = OpenApiResponse(description=serializer)
        found: dict[str, Any]
        found = super()._get_response_for_code(serializer, *args, **kwargs)  # type: ignore[no-untyped-call]  # untyped in the library
        return found

    def get_operation_id(self) -> str:
        action: str | None = getattr(self.view, "action", None)
        if action is None:
            return super().get_operation_id()
        resource = self._tokenize_path()[0].replace("-", "_")
        return f"{resource}_{_VERBS.get(action, action)}"


class ApiTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # untyped in the library
    target_class = "accounts.authentication.ApiTokenAuthentication"
    match_subclasses = True
    name = ["bearer", "token"]
    priority = 1

    def get_security_requirement(
        self, auto_schema: AutoSchema
    ) -> list[dict[str, list[Any]]]:
        return [{each: []} for each in self.name]  # one of them is enough

    def get_security_definition(self, auto_schema: AutoSchema) -> list[dict[str, str]]:
        return [
            {
                "type": "http",
                "scheme": "bearer",
                "description": "`Bearer nsc_...`. A token that may act for others names "
                f"the user in `{HEADER}`.",
            },
            {
                "type": "apiKey",
                "in": "header",
                "name": "Authorization",
                "description": "`Token nsc_...`, the word included: the same token.",
            },
        ]


def summarize(
    result: dict[str, Any], generator: object, request: object, public: bool
) -> dict[str, Any]:
    for methods in result["paths"].values():
        for operation in methods.values():
            first, _, _ = operation.get("description", "").partition("\n\n")
            operation.setdefault("summary", " ".join(first.split()).rstrip("."))
    return result


def document_errors(
    result: dict[str, Any], generator: object, request: object, public: bool
) -> dict[str, Any]:
    _complete(result.setdefault("components", {}))
    for address, methods in result["paths"].items():
        for method, operation in methods.items():
            for parameter in operation.get("parameters", ()):
                _describe_text(parameter["schema"])
            responses = operation["responses"]
            own = operation.pop(_OWN_ERROR, None)
            for status, response in responses.items():
                if status < "300":
                    response["headers"] = {**response.get("headers", {}), **_RATE}
                elif status >= "400" and "content" not in response:
                    responses[status] = _response(response, own or _ERROR)
            for status in sorted(
                _statuses(address, method, operation) - responses.keys()
            ):
                responses[status] = (
                    _response(_ERRORS[status], own)
                    if own
                    else {"$ref": f"#/components/responses/Error{status}"}
                )
    return result


def _complete(components: dict[str, Any]) -> None:
    for name, described in components.setdefault("schemas", {}).items():
        # `StrictSerializer` refuses unknown keys.
        if name.endswith("Request") and "properties" in described:
            described["additionalProperties"] = False
            for field in described["properties"].values():
                _describe_text(field)
    components["schemas"]["Error"] = _ENVELOPE
    components["schemas"]["ErrorCode"] = {"type": "string", "enum": [*error_codes()]}
    components["headers"] = _HEADERS
    components["responses"] = {
        f"Error{status}": _response(described, _ERROR)
        for status, described in _ERRORS.items()
    }


# No text column can hold U+0000; a blank text counts as empty.
_TEXT = r"^[^\u0000]*$"
_TEXT_NOT_BLANK = r"^[^\u0000]*[^\s\u001c-\u001f\u0000][^\u0000]*$"


def _describe_text(described: dict[str, Any]) -> None:
    if described.get("type") == "array":
        _describe_text(described["items"])
    if described.get("type") == "string" and not (
        described.keys() & {"enum", "format", "pattern"}
    ):
        described["pattern"] = _TEXT_NOT_BLANK if described.get("minLength") else _TEXT


def link_rows(
    result: dict[str, Any], generator: object, request: object, public: bool
) -> dict[str, Any]:
    """Add OpenAPI links from operations that return rows to those that take one."""
    paths, schemas = result["paths"], result["components"]["schemas"]
    # The schema's name of one row, and the path parameter that names such a row.
    named_by = {
        _component(methods["get"]["responses"]["200"]): found[1]
        for address, methods in paths.items()
        if (found := _ONE_ROW.fullmatch(address)) and "get" in methods
    }
    for address, methods in paths.items():
        for operation in methods.values():
            for status, response in operation["responses"].items():
                name = _component(response)
                shown = schemas.get(name, {}).get("properties", {})
                if status >= "300" or not shown:
                    continue
                parameter = named_by.get(name, "")
                links = _links(paths, address, parameter, is_list="results" in shown)
                if links:
                    response["links"] = links
    return result


_ONE_ROW = re.compile(r"[^{]+/\{(\w+_id)\}")
_PARAMETER = re.compile(r"\{(\w+)\}")


def _component(response: dict[str, Any]) -> str:
    body = response.get("content", {}).get("application/json", {}).get("schema", {})
    return str(body.get("$ref", "")).rpartition("/")[2]


def _links(
    paths: dict[str, Any], address: str, parameter: str, *, is_list: bool
) -> dict[str, Any]:
    """Return links to operations that take the row, by `parameter` or by `address`."""
    if f"{{{parameter}}}" in address:
        return {}  # an action on a row returns the same row
    target = re.compile(
        rf"[^{{]+/\{{({parameter})\}}[^{{]*"
        if parameter
        else rf"{re.escape(address)}/\{{(\w+)\}}[^{{]*"
    )
    body = "$response.body#/" + ("results/0/" if is_list else "")
    return {
        operation["operationId"]: {
            "operationId": operation["operationId"],
            "parameters": {
                **{
                    name: f"$request.path.{name}"
                    for name in _PARAMETER.findall(below)
                    if name != found[1]
                },
                found[1]: body + ("id" if found[1].endswith("_id") else found[1]),
            },
        }
        for below, methods in paths.items()
        if (found := target.fullmatch(below))
        for operation in methods.values()
    }


def _response(described: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    return {**described, "content": {"application/json": {"schema": schema}}}


def _has_key(operation: dict[str, Any]) -> bool:
    parameters = operation.get("parameters", ())
    return any(each["name"] == idempotency.HEADER for each in parameters)


def _statuses(address: str, method: str, operation: dict[str, Any]) -> set[str]:
    statuses = set(_ALWAYS)
    if method in _WRITES:
        statuses.add("409")
    if _has_key(operation):
        statuses.add("422")
    if "requestBody" in operation:
        statuses.update(_WITH_BODY)
    if "{" in address:
        statuses.add("404")
    return statuses


@lru_cache
def _described() -> dict[str, Any]:
    # Otherwise it would be in the language of the first caller.
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]  # untyped in the library
    with translation.override(settings.LANGUAGE_CODE):
        found: dict[str, Any] = generator.get_schema(public=True)  # type: ignore[no-untyped-call]
    return found


def _kept(renderer: type[BaseRenderer]) -> type[BaseRenderer]:
    """Return a renderer that renders the description only once per process."""

    @lru_cache
    def written() -> Any:
        return renderer().render(_described(), renderer_context={})

    class Kept(renderer):  # type: ignore[valid-type,misc]  # whichever it is
        def render(self, data: Any, *args: Any, **kwargs: Any) -> Any:
            is_description = data is _described()
            return (
                written() if is_description else super().render(data, *args, **kwargs)
            )

    return Kept


class DescriptionView(APIView):
    """The OpenAPI description of the interface, which anybody may read.

    It is cached: it does not depend on the reader, and takes a third of a second to
    build.
    """

    schema = None  # not part of the description itself
    throttle_classes = ()  # serving the cached text costs nothing
    permission_classes = [AllowAny]
    renderer_classes = [*map(_kept, (OpenApiYamlRenderer, OpenApiYamlRenderer2,
                                     OpenApiJsonRenderer, OpenApiJsonRenderer2))]  # fmt: skip

    def get(self, request: Request) -> Response:
        return Response(_described())
