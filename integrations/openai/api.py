"""OpenAI's chat completions and models, for clients that only speak this protocol.

A question is handled as by `POST /api/v1/ask`: same token, rate limit, entitlement and
record.
"""

import json
from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.rest import KnownQueryView, validated
from accounts.roles import IsAgent, caller
from integrations.openai.chat_models import (
    ChatModel,
    ModelNotFoundError,
    chat_models,
    find_knowledge_base,
)
from integrations.openai.serializers import (
    ChatRequestSerializer,
    ChatSerializer,
    ModelListSerializer,
    ModelSerializer,
    annotations,
    head,
    refusal_of,
    usage,
)
from jobs.api import EventStreamRenderer, event_schema
from qa.answers import asking
from qa.answers.conversations import resolved
from qa.answers.event_stream import HEARTBEAT, decided_in_thread, event_response
from qa.answers.models import Answer
from qa.answers.past import ask_as_of
from qa.answers.serializers import as_json, as_seen_by

_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def as_openai(error: dict[str, Any], status: int) -> dict[str, Any]:
    """Return a REST error in OpenAI's form, which `openai` raises by its status."""
    of_status = "server_error" if status >= 500 else "invalid_request_error"
    detail = error.get("detail")
    is_by_field = error["code"] == "invalid" and isinstance(detail, dict)
    fields = list(detail) if is_by_field and detail else []
    found = {
        "message": error["message"],
        "type": _TYPES.get(status, of_status),
        "param": fields[0] if fields else None,
        "code": error["code"],
    }
    return {"error": found if detail is None else {**found, "detail": detail}}


class OpenAIView(KnownQueryView, GenericAPIView[Any]):
    permission_classes = [IsAgent]
    throttle_scope = "user"
    pagination_class = None

    def handle_exception(self, exc: Exception) -> Response:
        response: Response = super().handle_exception(exc)
        response.data = as_openai(response.data["error"], response.status_code)
        return response


class ChatView(OpenAIView):
    throttle_scope = "ask"
    serializer_class = ChatSerializer
    renderer_classes = [JSONRenderer, EventStreamRenderer]

    @extend_schema(
        operation_id="chat_completions",
        request=ChatRequestSerializer,
        responses={
            (200, "application/json"): ChatSerializer,
            (200, "text/event-stream"): OpenApiResponse(
                event_schema(
                    message="an OpenAI `chat.completion.chunk` or error; the last is "
                    "`[DONE]`."
                ),
                "OpenAI chunks; the first one follows the decision, and the one with "
                "`finish_reason` has the whole answer in `nescio`.",
            ),
            404: "There is no such model.",
        },
    )
    def post(self, request: Request) -> HttpResponseBase:
        """Ask with OpenAI's protocol; `message.refusal` is null for an answer.

        The last user turn is asked; a follow-up is rewritten as a standalone question,
        which `nescio.question` shows. Earlier assistant turns are ignored. `content`
        can always be shown: an answer, or the wording of a refusal, which `refusal`
        repeats. The whole answer with reason, near misses and evidence is in `nescio`.

        With `nescio.as_of` in the request it is decided as of that moment and not
        stored.
        """
        given, asker = validated(ChatRequestSerializer, request.data), caller(request)
        model: str = given["model"]
        options = dict(given["nescio"])
        rewrites, at = options.pop("rewrite", True), options.pop("as_of", None)
        question = {
            "text": given["question"],
            "asker": asker,
            "knowledge_base": find_knowledge_base(model, asker=asker),
            "channel": Answer.Channel.API,
        }
        if at:
            language = options.get("language")
            answer = ask_as_of(**question, language=language, at=at)
            return Response(_completion(answer, as_json(answer), model))
        question |= {
            "earlier": resolved(given["earlier"]) if rewrites else (),
            **options,
        }
        if not given["stream"]:
            answer = asking.ask(**question)
            shown = as_seen_by(answer.asker or AnonymousUser(), answer)
            return Response(_completion(answer, shown, model))
        with_usage = (given["stream_options"] or {}).get("include_usage", False)
        answer = asking.keep_question(**question)
        return event_response(_chunks(answer, model, with_usage=with_usage))


class ModelListView(OpenAIView):
    serializer_class = ModelListSerializer

    @extend_schema(operation_id="models_list", responses=ModelListSerializer)
    def get(self, request: Request) -> Response:
        """List the models: each knowledge base, alone and with its active policy."""
        return Response({"object": "list", "data": _shown(chat_models())})


class ModelView(OpenAIView):
    serializer_class = ModelSerializer

    @extend_schema(operation_id="models_read", responses=ModelSerializer)
    def get(self, request: Request, model: str) -> Response:
        """Read a model."""
        found = [each for each in chat_models() if each.name == model]
        if not found:
            raise ModelNotFoundError(
                f"There is no model {model[:160]!r}; GET /v1/models lists them."
            )
        return Response(_shown(found)[0])


def _shown(models: list[ChatModel]) -> list[dict[str, Any]]:
    shown = ModelSerializer()
    return [shown.to_representation(each) for each in models]


def _completion(answer: Answer, shown: dict[str, Any], model: str) -> dict[str, Any]:
    message = {
        "role": "assistant",
        "content": shown["text"],
        "refusal": refusal_of(shown),
        "annotations": annotations(shown),
    }
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return {
        **head(answer, model, "chat.completion"),
        "choices": [choice],
        "usage": usage(answer),
        "nescio": shown,
    }


def _chunks(answer: Answer, model: str, *, with_usage: bool) -> Iterator[str]:
    """Decide a stored question and yield OpenAI chunks, none before the decision."""
    begin = head(answer, model, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], end: str | None = None, **more: object) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": end, "logprobs": None}
        return _event({**begin, "choices": [choice], **more})

    for event in decided_in_thread(answer):
        if event is None:
            yield HEARTBEAT
            continue
        name, data = event
        if name == "decision":
            yield chunk({"role": "assistant", "content": ""})
        elif name == "message":
            yield chunk({"content": data["delta"]})
        elif name == "end":
            if (refusal := refusal_of(data)) is not None:
                yield chunk({"refusal": refusal})
            yield chunk({"annotations": annotations(data)}, "stop", nescio=data)
            if with_usage:
                yield _event({**begin, "choices": [], "usage": usage(answer)})
            yield "data: [DONE]\n\n"
        elif name == "error":
            yield _event(as_openai(data["error"], 503))


def _event(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data, default=str)}\n\n"
