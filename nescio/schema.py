"""The OpenAPI description and its page: our token scheme, and the errors that every operation can give."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema

_ENVELOPE = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string", "description": "Stable, for machines."},
                "message": {"type": "string", "description": "For people."},
                "detail": {"description": "Where it helps: messages by field."},
            },
        }
    },
}
_RETRY_AFTER = {
    "Retry-After": {
        "description": "Seconds after which to try again.",
        "schema": {"type": "integer", "minimum": 0},
    }
}
_ERRORS: dict[str, dict[str, Any]] = {
    "400": {"description": "The request is wrong; the message says what and how."},
    "401": {
        "description": "Not signed in, or the token is unknown, revoked or expired.",
        "headers": {"WWW-Authenticate": {"schema": {"type": "string"}}},
    },
    "403": {"description": "Your role may not do this."},
    "404": {"description": "There is none, or you may not see it."},
    "406": {"description": "None of the accepted media types is offered."},
    "409": {"description": "The row changed meanwhile, or its state forbids this."},
    "413": {"description": "The body is too large."},
    "415": {"description": "The body is not application/json."},
    "429": {"description": "Too many requests.", "headers": _RETRY_AFTER},
    "503": {
        "description": "A part that is needed is down; nothing is lost.",
        "headers": _RETRY_AFTER,
    },
}
_WRITES = frozenset({"post", "put", "patch", "delete"})
_WITH_BODY = ("413", "415")
# 400: a parameter that the address does not know.
_ALWAYS = ("400", "401", "403", "406", "429", "503")


_VERBS = {"retrieve": "read", "partial_update": "change", "destroy": "delete"}


class OperationSchema(AutoSchema):
    """Names the operations of a view set by the resource and what is done to it."""

    def get_operation_id(self) -> str:
        action: str | None = getattr(self.view, "action", None)
        if action is None:
            return super().get_operation_id()
        return f"{self._tokenize_path()[0]}_{_VERBS.get(action, action)}"


class ApiTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # untyped in the library
    target_class = "accounts.authentication.ApiTokenAuthentication"
    name = "token"
    priority = 1

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "`Bearer nsc_...` or `Token nsc_...`, the word included.",
        }


def summarize(
    result: dict[str, Any],
    generator: object,
    request: object,
    public: bool,
) -> dict[str, Any]:
    for methods in result["paths"].values():
        for operation in methods.values():
            first, _, _ = operation.get("description", "").partition("\n\n")
            operation.setdefault("summary", " ".join(first.split()).rstrip("."))
    return result


def document_errors(
    result: dict[str, Any],
    generator: object,
    request: object,
    public: bool,
) -> dict[str, Any]:
    components = result.setdefault("components", {})
    for name, described in components.setdefault("schemas", {}).items():
        # A key that no field has is refused (`StrictSerializer`).
        if name.endswith("Request") and "properties" in described:
            described["additionalProperties"] = False
    components["schemas"]["Error"] = _ENVELOPE
    components["responses"] = {
        f"Error{status}": _response(described) for status, described in _ERRORS.items()
    }
    for address, methods in result["paths"].items():
        for method, operation in methods.items():
            responses = operation["responses"]
            for status in responses:
                if status >= "400" and "content" not in responses[status]:
                    responses[status] = _response(responses[status])
            for status in sorted(
                _statuses(address, method, operation) - responses.keys()
            ):
                responses[status] = {"$ref": f"#/components/responses/Error{status}"}
    return result


def _response(described: dict[str, Any]) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Error"}
    return {**described, "content": {"application/json": {"schema": schema}}}


def _statuses(address: str, method: str, operation: dict[str, Any]) -> set[str]:
    statuses = set(_ALWAYS)
    if method in _WRITES:
        statuses.add("409")
    if "requestBody" in operation:
        statuses.update(_WITH_BODY)
    if "{" in address:
        statuses.add("404")
    return statuses
