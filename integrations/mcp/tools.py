"""Nescio's tools for the Model Context Protocol; each is one REST request.

https://modelcontextprotocol.io/specification; the official SDK provides the protocol,
its versions and its checks.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from mcp.server import Server, ServerRequestContext
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from kb.documents.models import KnowledgeBase

Reply = tuple[int, dict[str, Any]]
"""Status and body of a REST response."""

Rest = Callable[[str, str, dict[str, Any]], Awaitable[Reply]]
"""Makes one request as the caller of the tool, given method, address and body."""

_INSTRUCTIONS = """\
Nescio answers from verified knowledge, or refuses and says why. Use `ask` for questions; \
where `answered` is false, tell the user that it is not known and the reason, and do not \
answer it from elsewhere. Name the citations of an answer. `near_misses` are close, and no \
answer; where `meanings` names several of them by their `entry`, ask which is meant."""

_QUESTION: dict[str, Any] = {
    "question": {"type": "string", "description": "One question, complete in itself."},
    "knowledge_base": {
        "type": "string",
        "description": "Its slug; without it, the first one.",
    },
    "language": {
        "type": "string",
        "enum": KnowledgeBase.Language.values,
        "description": "Of the answer.",
    },
    "as_of": {
        "type": "string",
        "format": "date-time",
        "description": "A moment gone by: with knowledge and policy as they were then. "
        "Nothing is kept of it. Needs the role curator.",
    },
}


@dataclass(frozen=True, slots=True)
class _Operation:
    """A tool and its REST request; `{name}` in the address is an argument.

    Attributes:
        sends: Fields of the body besides the arguments.
        shows: The keys of the response that are returned; all of them if empty.
    """

    tool: Tool
    method: str
    address: str
    sends: dict[str, Any]
    shows: tuple[str, ...] = ()


def _tool(
    name: str,
    description: str,
    properties: dict[str, Any],
    required: list[str],
    *,
    reads: bool = False,
) -> Tool:
    return Tool(
        name=name,
        description=description,
        input_schema={
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        },
        annotations=ToolAnnotations(
            read_only_hint=reads, destructive_hint=False, open_world_hint=False
        ),
    )


_OPERATIONS = (
    _Operation(
        _tool(
            "ask",
            "Ask the knowledge base. Returns an answer with its citations, or a refusal "
            "with its reason and what was near. The question is kept; `id` names it.",
            {
                **_QUESTION,
                "tags": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Slugs of what it is about.",
                },
                "conversation": {
                    "type": "string",
                    "format": "uuid",
                    "description": "The `conversation` of an earlier answer: the question "
                    "follows it and need not be complete; `question` of the answer says "
                    "as what it was asked.",
                },
            },
            ["question"],
        ),
        "POST",
        "/api/v1/ask",
        {},
        (
            "id", "conversation", "question", "answered", "text", "short_answer", "gate", "reason", "unsourced",
            "citations", "near_misses", "meanings", "disagreements", "as_of",
        ),
    ),
    _Operation(
        _tool(
            "search",
            "Find the entries that are nearest to a question, best first. `passes` says "
            "whether they would be near enough to answer from. Nothing is kept.",
            _QUESTION,
            ["question"],
            reads=True,
        ),
        "POST",
        "/api/v1/search",
        {},
        ("passes", "reason", "verbatim", "entry", "evidence"),
    ),
    _Operation(
        _tool(
            "list_knowledge_bases",
            "List the knowledge bases: `slug` names one where a tool takes a "
            "`knowledge_base`; the one with `is_default` is asked without it.",
            {},
            [],
            reads=True,
        ),
        "GET",
        "/api/v1/knowledge-bases",
        {},
        ("results",),
    ),
    _Operation(
        _tool(
            "get_entry",
            "Read an entry with its state, source and validity.",
            {"entry": {"type": "integer", "description": "Its number in a citation."}},
            ["entry"],
            reads=True,
        ),
        "GET",
        "/api/v1/entries/{entry}",
        {},
    ),
    _Operation(
        _tool(
            "propose_entry",
            "Write down what should be known, as a draft: no answer rests on it before a "
            "curator reviews it. Needs the role curator.",
            {
                "text": {"type": "string", "description": "One fact, or an answer."},
                "question": {
                    "type": "string",
                    "description": "The question that the text answers.",
                },
                "audience": {
                    "type": "string",
                    "description": "Slug of who may see it, such as everyone.",
                },
                "knowledge_base": _QUESTION["knowledge_base"],
                "reason": {"type": "string", "description": "Why it should be known."},
            },
            ["text", "audience"],
        ),
        "POST",
        "/api/v1/entries",
        {"state": "draft"},
    ),
    _Operation(
        _tool(
            "vote",
            "Rate an answer or refusal by its `id`; null takes the vote back.",
            {
                "answer": {"type": "string", "format": "uuid"},
                "rating": {"enum": ["up", "down", None]},
                "reasons": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Of a thumb down, such as wrong or should_be_known.",
                },
                "comment": {"type": "string"},
                "expected_answer": {"type": "string"},
                "answering_entry": {
                    "type": "integer",
                    "description": "With a thumb down on a refusal: the entry, of its "
                    "`near_misses`, that answers it, such as the one of `meanings` that "
                    "was meant.",
                },
            },
            ["answer", "rating"],
        ),
        "PUT",
        "/api/v1/answers/{answer}/vote",
        {},
    ),
)  # fmt: skip
_BY_NAME = {each.tool.name: each for each in _OPERATIONS}


def make_server(rest: Rest) -> Server[Any]:
    """Return a server whose tools make their requests through `rest`."""

    async def list_tools(
        _context: ServerRequestContext[Any], _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=[each.tool for each in _OPERATIONS])

    async def call_tool(
        _context: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult:
        return await _called(rest, params.name, dict(params.arguments or {}))

    return Server(
        "nescio",
        version="1",
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _called(rest: Rest, name: str, arguments: dict[str, Any]) -> CallToolResult:
    operation = _BY_NAME.get(name)
    if operation is None:
        known = ", ".join(_BY_NAME)
        return _failed(f"There is no tool {name[:60]!r}; there are: {known}.")
    in_address = {
        key: arguments.pop(key)
        for key in operation.tool.input_schema["required"]
        if f"{{{key}}}" in operation.address and key in arguments
    }
    try:
        address = operation.address.format_map(
            {key: quote(str(value), safe="") for key, value in in_address.items()}
        )
    except KeyError as missing:
        return _failed(f"{missing.args[0]}: This argument is required.")
    status, body = await rest(operation.method, address, arguments | operation.sends)
    if status >= 400:
        return _failed(body["error"]["message"], body)
    shown = {key: body[key] for key in operation.shows} if operation.shows else body
    return CallToolResult(
        content=[TextContent(text=json.dumps(shown))], structured_content=shown
    )


def _failed(message: str, body: dict[str, Any] | None = None) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(text=message)], structured_content=body, is_error=True
    )
