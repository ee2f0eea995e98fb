from datetime import datetime
from typing import Any
from uuid import UUID

import django_filters
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.generics import GenericAPIView
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import rest
from accounts.roles import IsAgent
from jobs.api import EventStreamRenderer, event_schema
from kb.documents.models import KnowledgeBase
from kb.interface.api import KnowledgeBaseFilter, TagFilter
from kb.tags.models import Tag
from qa.answers import asking
from qa.answers.conversations import check_knowledge_base, find_conversation
from qa.answers.event_stream import event_response, stream
from qa.answers.models import Answer, AnswerQuerySet
from qa.answers.past import ask_as_of
from qa.answers.questions import find_knowledge_base
from qa.answers.serializers import (
    AnswerSerializer,
    AnswerSummarySerializer,
    as_json,
    as_seen_by,
)
from qa.exceptions import AnswerNotFoundError
from qa.pipeline.gates import Gate, Reason
from qa.votes.models import Vote

EXAMPLE = "What does a replacement card cost?"


class QuestionSerializer(rest.StrictSerializer):
    """A question, and the knowledge base to ask."""

    question = rest.StrictCharField(
        max_length=settings.QUESTION_MAX_CHARACTERS,
        help_text="Contains at least one letter or digit.",
    )
    knowledge_base = rest.StrictCharField(
        max_length=50,
        default="",
        allow_blank=True,
        help_text="Its slug; if omitted, the first one.",
    )
    language = serializers.ChoiceField(
        KnowledgeBase.Language.choices,
        default=None,
        allow_null=True,
        help_text="Language of the answer; if omitted, the knowledge base's, and a "
        "refusal is in the question's language if it can be detected.",
    )
    as_of = rest.StrictMomentField(
        default=None,
        allow_null=True,
        help_text="A past moment: decide with knowledge and policy as they were then. "
        "For curators.",
    )


class TaggedQuestionSerializer(QuestionSerializer):
    """A question that is stored, with its tags and its conversation."""

    tags = rest.StrictSlugListField(
        slug_field="slug",
        queryset=Tag.objects.all(),
        default=list,
        max_length=len(Tag.Facet),
        help_text="Slugs of the product line and line of business that it is about; if "
        "omitted, they are taken from the evidence.",
    )

    conversation = serializers.UUIDField(
        default=None,
        allow_null=True,
        help_text="The `conversation` of one of your answers, to which this is a "
        "follow-up. It is asked in that answer's knowledge base.",
    )
    rewrite = rest.StrictBooleanField(
        default=True,
        help_text="Rewrite a follow-up as a standalone question, which is `question` of "
        "the answer; false: ask it as typed.",
    )

    def validate_tags(self, tags: list[Tag]) -> list[Tag]:
        facets = [tag.facet for tag in tags]
        if len(set(facets)) < len(facets):
            raise serializers.ValidationError(
                f"Two tags are a {tags[0].get_facet_display()}; name one of each kind."
            )
        return tags


class AnswerFilter(rest.StrictFilterSet):
    knowledge_base = KnowledgeBaseFilter()
    asker = rest.SlugFilter(method="filter_asker", label="The asker's user name.")
    conversation = django_filters.UUIDFilter(
        method="filter_conversation", label="The `conversation` of the answers."
    )
    vote = django_filters.ChoiceFilter(
        choices=[(each, each) for each in ("up", "down", "none")],
        method="filter_vote",
        label="By votes that you may read: your own, and all votes where you are sme.",
    )
    outcome = django_filters.ChoiceFilter(choices=Answer.Outcome.choices)
    gate = django_filters.ChoiceFilter(choices=[(g.value, g.value) for g in Gate])
    reason = django_filters.ChoiceFilter(
        field_name="shown_reason", choices=[(r.value, r.value) for r in Reason]
    )
    product_line = TagFilter(Tag.Facet.PRODUCT_LINE)
    line_of_business = TagFilter(Tag.Facet.LINE_OF_BUSINESS)
    created_after = rest.MomentFilter("created_at", "gte")
    created_before = rest.MomentFilter("created_at", "lt")

    def filter_asker(
        self, answers: AnswerQuerySet, _name: str, username: str
    ) -> AnswerQuerySet:
        # A subquery, so that the index by asker and time serves the newest answers.
        found = User.objects.filter(username=username)
        return answers.filter(asker=Subquery(found.values("pk")))

    def filter_conversation(
        self, answers: AnswerQuerySet, _name: str, conversation: UUID
    ) -> AnswerQuerySet:
        return answers.in_conversation(conversation)

    def filter_vote(
        self, answers: AnswerQuerySet, _name: str, wanted: str
    ) -> AnswerQuerySet:
        reader = self.request.user  # type: ignore[union-attr]  # a view's has one
        votes = Vote.objects.readable_by(reader).filter(answer=OuterRef("pk"))
        if wanted == "none":
            return answers.filter(~Exists(votes))
        return answers.filter(Exists(votes.filter(is_up=wanted == "up")))


_RESPONSES: dict[Any, Any] = {
    (200, "application/json"): AnswerSerializer,
    (200, "text/event-stream"): OpenApiResponse(
        event_schema(
            stage="`{stage, milliseconds}`, the time since the start. The first, `kept`,"
            " also has the `id`, `retrieve` the number of pieces of `evidence` and the "
            "`nearest` distance, a gate whether it `passed`.",
            decision="`{id, outcome, answered, unsourced, gate, reason}` of the `Answer`.",
            message="`{delta}`: the next piece of its `text`.",
            end="the `Answer`.",
            error="an `Error`, with the answer's `id` in `detail`; the last event.",
        ),
        "Events: a `stage` as each stage completes, `decision` before any text, "
        "`message` with pieces of the text, `end` with the whole answer; or `error`.",
    ),
    503: "A model is down, or too many questions wait for it. The question is "
    "stored; `detail` has its `id`, with "
    "which it can be retried (`POST /api/v1/answers/{id}/retry`).",
}


_RENDERERS = [JSONRenderer, EventStreamRenderer]


class AskView(rest.KnownQueryView, GenericAPIView[Answer]):
    permission_classes = [IsAgent]
    throttle_scope = "ask"
    serializer_class = AnswerSerializer
    renderer_classes = _RENDERERS

    @extend_schema(
        operation_id="ask",
        request=TaggedQuestionSerializer,
        examples=[
            OpenApiExample("A question", {"question": EXAMPLE}, request_only=True),
            OpenApiExample(
                "A follow-up",
                {
                    "question": "And for the Business card?",
                    "conversation": "7d3f8a52-6c1e-4b0f-9a55-2f4c0d6f1b3e",
                },
                request_only=True,
            ),
        ],
        responses={
            **_RESPONSES,
            404: "There is no such knowledge base, or no such conversation of yours.",
            409: "Too many entries of that moment have to be embedded first.",
        },
    )
    def post(self, request: Request) -> HttpResponseBase:
        """Ask a question; get an answer with its evidence, or a refusal with a reason.

        A refusal is a decision, not an error: status 200 with `answered` false. With
        `Accept: text/event-stream` each stage is sent as it completes, and text only
        after every gate has passed it.

        With `conversation` a follow-up ("and for the Business card?") is rewritten as a
        standalone question from your own earlier questions; their answers are not used.

        With `as_of` the question is decided as it would have been at that moment, but
        only with what you may see today; nothing is stored.
        """
        question = read_question(request, TaggedQuestionSerializer)
        if at := question.pop("as_of", None):
            return self._as_of(request, at, question)
        if _is_streamed(request):
            answer = asking.keep_question(**question, channel=Answer.Channel.API)
            return event_response(stream(answer))
        answer = asking.ask(**question, channel=Answer.Channel.API)
        return _whole(answer, request)

    def _as_of(
        self, request: Request, at: datetime, question: dict[str, Any]
    ) -> Response:
        if _is_streamed(request) or question.pop("tags") or "conversation" in question:
            raise serializers.ValidationError(
                {
                    "as_of": "A question with as_of is not stored: ask it without "
                    "tags, conversation and text/event-stream."
                }
            )
        answer = ask_as_of(**question, at=at, channel=Answer.Channel.API)
        return Response(as_json(answer))


class AnswerViewSet(rest.RowViewSet[Answer]):
    permission_classes = [IsAgent]
    serializer_class: type[AnswerSummarySerializer] = AnswerSerializer
    filterset_class = AnswerFilter
    lookup_url_kwarg = "answer_id"
    lookup_value_converter = "uuid"
    not_found = AnswerNotFoundError

    def get_queryset(self) -> QuerySet[Answer]:
        user = self.request.user
        answers = Answer.objects.visible_to(user).with_vote_of(user)
        return answers if self.action == "list" else answers.with_evidence(user)

    @extend_schema(responses=AnswerSummarySerializer(many=True))
    def list(self, request: Request) -> Response:
        """List your own questions, newest first; sme and above see everybody's."""
        self.serializer_class = AnswerSummarySerializer
        return super().list(request)

    def retrieve(self, request: Request, answer_id: UUID) -> Response:
        """Read an answer or refusal with its evidence and how it was decided."""
        return Response(as_json(self.get_object()))

    @extend_schema(
        request=None,
        responses={**_RESPONSES, 409: "It is already decided, or is being decided."},
    )
    @action(
        detail=True, methods=["post"], throttle_scope="ask", renderer_classes=_RENDERERS
    )
    def retry(self, request: Request, answer_id: UUID) -> HttpResponseBase:
        """Retry one of your own questions that failed; the response is as for `ask`."""
        answer = asking.find_failed(answer_id, asker=request.user)
        if _is_streamed(request):
            return event_response(stream(answer))
        for _ in asking.decide(answer):
            pass
        return _whole(answer, request)


def read_question(
    request: Request, body: type[QuestionSerializer] = QuestionSerializer
) -> dict[str, Any]:
    given = rest.validated(body, request.data)
    slug: str = given["knowledge_base"]
    continued: dict[str, Any] = {}
    if conversation_id := given.get("conversation"):
        found = find_conversation(conversation_id, asker=request.user)
        check_knowledge_base(found, slug)
        slug = found.knowledge_base
        earlier = found.questions if given["rewrite"] else ()
        continued = {
            "conversation": found.id,
            "earlier": earlier,
            "asked_back": found.asked_back,
        }
    knowledge_base: KnowledgeBase = find_knowledge_base(slug, asker=request.user)
    return {
        "text": given["question"],
        "asker": request.user,
        "knowledge_base": knowledge_base,
        "language": given["language"],
        **({"as_of": given["as_of"]} if given["as_of"] else {}),
        **({"tags": given["tags"]} if "tags" in given else {}),
        **continued,
    }


def _is_streamed(request: Request) -> bool:
    renderer = request.accepted_renderer
    return renderer.format == EventStreamRenderer.format


def _whole(answer: Answer, request: Request) -> Response:
    return Response(as_seen_by(request.user, answer))
