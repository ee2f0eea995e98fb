from typing import Any

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
from qa.api.requests import QuestionSerializer
from qa.models import Answer
from qa.models.answer import fetch_evidence
from qa.serializers import AnswerSerializer
from qa.services import asking


class AskView(GenericAPIView[Answer]):
    """Where questions are asked."""

    permission_classes = [IsAgent]
    throttle_scope = "ask"
    serializer_class = AnswerSerializer
    renderer_classes = [JSONRenderer, EventStreamRenderer]

    @extend_schema(
        operation_id="ask",
        request=QuestionSerializer,
        responses={
            (200, "application/json"): AnswerSerializer,
            (200, "text/event-stream"): OpenApiResponse(
                EVENT_SCHEMA,
                "Events `stage` as they pass, `decision` before any text, `message` "
                "with pieces of the text, `end` with the whole answer; or `error`.",
            ),
            404: OpenApiResponse(description="There is no such knowledge base."),
        },
    )
    def post(self, request: Request) -> HttpResponseBase:
        """Ask a question; get an answer with its evidence, or a refusal that says why.

        A refusal is a decision and no error: status 200 with `answered` false. With
        `Accept: text/event-stream` the stages come as they pass, and no text before
        every gate let it through.
        """
        asked = read_question(request)
        if request.accepted_renderer.format == EventStreamRenderer.format:
            answer = asking.keep_question(**asked, channel=Answer.Channel.API)
            return _streamed(answer)
        answer = asking.ask(**asked, channel=Answer.Channel.API)
        fetch_evidence(answer, request.user)
        return Response(AnswerSerializer(answer).data)


def read_question(request: Request) -> dict[str, Any]:
    """Return the validated question as the services' keyword arguments.

    Raises:
        ValidationError: It is not as described.
        KnowledgeBaseNotFoundError: There is no such knowledge base.
    """
    asked = QuestionSerializer(data=request.data)
    asked.is_valid(raise_exception=True)
    given = asked.validated_data
    knowledge_base: KnowledgeBase = asking.find_knowledge_base(given["knowledge_base"])
    return {
        "text": given["question"],
        "asker": request.user,
        "knowledge_base": knowledge_base,
        "language": given["language"],
    }


def _streamed(answer: Answer) -> StreamingHttpResponse:
    response = StreamingHttpResponse(stream(answer), content_type="text/event-stream")
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    return response
