"""Votes as JSON, as far as the reader may see the answers they are on."""

from typing import Literal
from uuid import UUID

import django_filters
from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import rest
from accounts.roles import IsAgent, IsSMESomewhere, Role, caller, where_role
from kb.interface.api import KnowledgeBaseFilter
from qa.answers.models import Answer
from qa.exceptions import VoteNotFoundError
from qa.pipeline.gates import Gate, Reason
from qa.votes.models import Vote
from qa.votes.services import (
    COMMENT_LIMIT,
    EXPECTED_LIMIT,
    csv_lines,
    handle_votes,
    reopen_votes,
    vote,
)


class VoteSerializer(rest.StrictSerializer):
    """A thumb up or down, and what is wrong."""

    rating = serializers.ChoiceField(
        ["up", "down"], allow_null=True, help_text="null takes the vote back."
    )
    reasons = rest.StrictListField(
        child=serializers.ChoiceField(Vote.Reason.choices),
        default=list,
        max_length=len(Vote.Reason),
        help_text="Of a thumb down. On an answer: wrong, incomplete, outdated, "
        "off_topic, not_in_evidence, unclear, other; on a refusal: should_be_known, "
        "entry_exists, wrong_reason, other.",
    )
    comment = rest.StrictCharField(
        max_length=COMMENT_LIMIT, default="", allow_blank=True
    )
    expected_answer = rest.StrictCharField(
        max_length=EXPECTED_LIMIT,
        default="",
        allow_blank=True,
        help_text="Of a thumb down: what should have been said.",
    )

    answering_entry = rest.StrictIntegerField(
        source="answering_entry_id",
        min_value=1,
        max_value=2**63 - 1,
        default=None,
        allow_null=True,
        help_text="Of a thumb down on a refusal: the id of the entry among its near "
        "misses that answers the question.",
    )


class VotedAnswerSerializer(serializers.Serializer[Answer]):
    """The answer or refusal that was voted on."""

    id = serializers.UUIDField()
    question = serializers.CharField()
    outcome = serializers.ChoiceField(Answer.Outcome.choices)
    gate = serializers.ChoiceField(
        [gate.value for gate in Gate],
        allow_blank=True,
        help_text="Empty if an answer passed all gates.",
    )
    reason = serializers.ChoiceField(
        [reason.value for reason in Reason],
        source="shown_reason",
        allow_blank=True,
        help_text="Why it was refused, as far as the asker may know.",
    )
    created_at = serializers.DateTimeField()


class VoteSummarySerializer(serializers.Serializer[Vote]):
    """A vote with the answer that it is on."""

    id = serializers.IntegerField()
    rating = serializers.SerializerMethodField()
    reasons = serializers.ListField(child=serializers.ChoiceField(Vote.Reason.choices))
    comment = serializers.CharField(source="shown_comment", read_only=True)
    expected_answer = serializers.CharField(
        source="shown_expected_answer", read_only=True
    )
    answering_entry = serializers.IntegerField(
        source="shown_answering_entry", allow_null=True, read_only=True
    )
    withheld = serializers.BooleanField(
        source="is_withheld",
        help_text="The answer cites an entry that you may not see; neither it nor the "
        "comments on it are shown.",
    )
    voter = serializers.CharField(source="user.username")
    answer = VotedAnswerSerializer()
    text = serializers.CharField(
        source="shown_answer",
        read_only=True,
        help_text="What was shown: the answer, or the refusal's wording.",
    )
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    handled_at = serializers.DateTimeField(allow_null=True)
    handled_by = rest.username_field("handled_by")

    def get_rating(self, vote: Vote) -> Literal["up", "down"]:
        return "up" if vote.is_up else "down"


@extend_schema_field({"type": "string", "enum": ["up", "down"]})
class _RatingFilter(django_filters.TypedChoiceFilter):
    pass


@extend_schema_field({"type": "string", "enum": list(Vote.Reason.values)})
class _VoteReasonFilter(django_filters.TypedChoiceFilter):
    pass


class VoteFilter(rest.StrictFilterSet):
    rating = _RatingFilter(
        field_name="is_up",
        choices=[("up", "up"), ("down", "down")],
        coerce=lambda value: value == "up",
    )
    vote_reason = _VoteReasonFilter(
        field_name="reasons",
        lookup_expr="contains",
        choices=Vote.Reason.choices,
        coerce=lambda value: [value],
    )
    is_handled = rest.IsSetFilter("handled_at")
    outcome = django_filters.ChoiceFilter(
        field_name="answer__outcome", choices=Answer.Outcome.choices
    )
    gate = django_filters.ChoiceFilter(
        field_name="answer__gate", choices=[(g.value, g.value) for g in Gate]
    )
    knowledge_base = KnowledgeBaseFilter("answer__knowledge_base")
    created_after = rest.MomentFilter("created_at", "gte")
    created_before = rest.MomentFilter("created_at", "lt")


class VoteView(rest.KnownQueryView, GenericAPIView[Answer]):
    permission_classes = [IsAgent]
    throttle_scope = "user"
    serializer_class = VoteSerializer

    @extend_schema(
        operation_id="answers_vote",
        examples=[
            OpenApiExample("It helped", {"rating": "up"}, request_only=True),
            OpenApiExample(
                "It is out of date",
                {
                    "rating": "down",
                    "reasons": ["outdated"],
                    "expected_answer": "It costs 13 euros since May.",
                },
                request_only=True,
            ),
        ],
        responses={
            200: VoteSerializer,
            409: "The question is not decided yet, or the entry was not shown.",
        },
    )
    def put(self, request: Request, answer_id: UUID) -> Response:
        """Set, change or take back your thumb on an answer or a refusal."""
        said = rest.validated(VoteSerializer, request.data)
        rating = said.pop("rating")
        kept = vote(
            answer_id,
            user=caller(request),
            is_up=None if rating is None else rating == "up",
            **said,
        )
        # A vote that was taken back has empty fields.
        shown = {name: getattr(kept or Vote(), name) for name in said}
        return Response(VoteSerializer({"rating": rating, **shown}).data)


class VoteViewSet(rest.RowViewSet[Vote]):
    permission_classes = [IsSMESomewhere]
    serializer_class = VoteSummarySerializer
    filterset_class = VoteFilter
    lookup_url_kwarg = "vote_id"
    not_found = VoteNotFoundError

    def get_queryset(self) -> QuerySet[Vote]:
        user = self.request.user
        mine = where_role(user, Role.SME, "answer__knowledge_base")
        votes = Vote.objects.visible_to(user).filter(mine)
        return votes.select_related("answer", "user", "handled_by")

    def list(self, request: Request) -> Response:
        """List votes with the answers they are on, newest first."""
        return super().list(request)

    @extend_schema(filters=True, responses={(200, "text/csv"): OpenApiTypes.STR})
    @action(detail=False, pagination_class=None)
    def export(self, request: Request) -> StreamingHttpResponse:
        """Download votes as CSV, newest first; filters as for the list."""
        votes = self.filter_queryset(self.get_queryset())
        return rest.csv_download(csv_lines(votes), "votes")

    @extend_schema(operation_id="votes_handle", request=None)
    @action(detail=True, methods=["put"])
    def handled(self, request: Request, vote_id: int) -> Response:
        """Mark a vote as dealt with."""
        handle_votes(self._row(), by=self.user)
        return self.row_response()

    @extend_schema(responses={200: VoteSummarySerializer})
    @handled.mapping.delete
    def reopen(self, request: Request, vote_id: int) -> Response:
        """Reopen a vote that was dealt with."""
        reopen_votes(self._row())
        return self.row_response()

    def _row(self) -> QuerySet[Vote]:
        return self.get_queryset().filter(pk=self.get_object().pk)
