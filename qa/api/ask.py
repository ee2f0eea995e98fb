from typing import Any
from uuid import UUID

from django.http import HttpResponseBase, StreamingHttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import IsAgent
from jobs.api.events import EVENT_SCHEMA, EventStreamRenderer
from kb.models import KnowledgeBase
from qa.api.event_stream import stream
from qa.api.requests import QuestionSerializer, TaggedQuestionSerializer
from qa.models import Answer
from qa.models.answer import fetch_evidence
from qa.serializers import AnswerSerializer, as_json
from qa.services import asking

_RESPONSES: dict[Any, Any] = {
    (200, "application/json"): AnswerSerializer,
    (200, "text/event-stream"): OpenApiResponse(
        EVENT_SCHEMA,
        "Events `stage` as they pass, `decision` before any text, `message` "
        "with pieces of the text, `end` with the whole answer; or `error`.",
    ),
    503: OpenApiResponse(
        description="A model is down. The question is kept; `detail` has its `id`, by "
        "which it can be decided again (`POST /api/v1/answers/{id}/retry`)."
    ),
}


class _DecidingView(GenericAPIView[Answer]):
    permission_classes = [IsAgent]
    throttle_scope = "ask"
    serializer_class = AnswerSerializer
    renderer_classes = [JSONRenderer, EventStreamRenderer]

    def _is_streamed(self) -> bool:
        renderer = self.request.accepted_renderer
        return renderer.format == EventStreamRenderer.format


class AskView(_DecidingView):
    """Where questions are asked."""

    @extend_schema(
        operation_id="ask",
        request=TaggedQuestionSerializer,
        responses={
            **_RESPONSES,
            404: OpenApiResponse(description="There is no such knowledge base."),
        },
    )
    def post(self, request: Request) -> HttpResponseBase:
        """Ask a question; get an answer with its evidence, or a refusal that says why.

        A refusal is a decision and no error: status 200 with `answered` false. With
        `Accept: text/event-stream` the stages come as they pass, and no text before
        every gate let it through.
        """
        asked = read_question(request, TaggedQuestionSerializer)
        if self._is_streamed():
            answer = asking.keep_question(**asked, channel=Answer.Channel.API)
            return _streamed(answer)
        answer = asking.ask(**asked, channel=Answer.Channel.API)
        return _whole(answer, request)


class RetryView(_DecidingView):
    """A question whose first try failed."""

    @extend_schema(
        operation_id="answers_retry",
        request=None,
        responses={
            **_RESPONSES,
            409: OpenApiResponse(description="It was decided, or is being decided."),
        },
    )
    def post(self, request: Request, answer_id: UUID) -> HttpResponseBase:
        """Decide one's own question again that failed; the same response as to `ask`."""
        answer = asking.find_failed(answer_id, asker=request.user)
        if self._is_streamed():
            return _streamed(answer)
        for _ in asking.decide(answer):
            pass
        return _whole(answer, request)


def read_question(
    request: Request, body: type[QuestionSerializer] = QuestionSerializer
) -> dict[str, Any]:
    """Return the validated question as the services' keyword arguments.

    Args:
        body: As what it is read.

    Raises:
        ValidationError: It is not as described.
        KnowledgeBaseNotFoundError: There is no such knowledge base.
    """
    asked = body(data=request.data)
    asked.is_valid(raise_exception=True)
    given = asked.validated_data
    knowledge_base: KnowledgeBase = asking.find_knowledge_base(
        given["knowledge_base"], asker=request.user
    )
    return {
        "text": given["question"],
        "asker": request.user,
        "knowledge_base": knowledge_base,
        "language": given["language"],
        **({"tags": given["tags"]} if "tags" in given else {}),
    }


def _whole(answer: Answer, request: Request) -> Response:
    if not hasattr(answer, "pieces"):
        fetch_evidence(answer, request.user)
    return Response(as_json(answer))


def _streamed(answer: Answer) -> StreamingHttpResponse:
    response = StreamingHttpResponse(stream(answer), content_type="text/event-stream")
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    return response
