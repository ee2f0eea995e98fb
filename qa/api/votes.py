"""Thumbs over REST: one's own, and the inbox of all for who reviews answers."""

from uuid import UUID

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.pagination import NewestFirstPagination
from accounts.roles import IsAgent, IsSME
from kb.api.permissions import caller
from qa.api.filters import VoteFilter
from qa.api.requests import VoteSerializer
from qa.exceptions import VoteNotFoundError
from qa.models import Answer, Vote
from qa.services.vote_export import csv_lines
from qa.services.votes import handle_votes, reopen_votes, vote
from qa.vote_serializers import VoteSummarySerializer


class VoteView(GenericAPIView[Answer]):
    """One's own thumb on an answer or refusal."""

    permission_classes = [IsAgent]
    throttle_scope = "user"
    serializer_class = VoteSerializer

    @extend_schema(
        operation_id="answers_vote",
        responses={
            200: VoteSerializer,
            409: OpenApiResponse(description="The question is not decided yet."),
        },
    )
    def put(self, request: Request, answer_id: UUID) -> Response:
        """Set one's thumb on an answer or a refusal, change it, or take it back."""
        given = VoteSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        said = dict(given.validated_data)
        rating = said.pop("rating")
        kept = vote(
            answer_id,
            user=caller(request),
            is_up=None if rating is None else rating == "up",
            **said,
        )
        names = ("reasons", "comment", "expected_answer")
        found = {name: getattr(kept, name) for name in names} if kept else {}
        return Response(
            VoteSerializer({"rating": rating, **_NOTHING_SAID, **found}).data
        )


class _VotesView(GenericAPIView[Vote]):
    permission_classes = [IsSME]
    throttle_scope = "user"
    serializer_class = VoteSummarySerializer
    filterset_class = VoteFilter

    def get_queryset(self) -> QuerySet[Vote]:
        """Votes with their answers, as far as the reviewer may read them."""
        votes = Vote.objects.visible_to(self.request.user)
        return votes.select_related("answer", "user", "handled_by")


class VoteListView(_VotesView, ListAPIView[Vote]):
    """Everybody's thumbs."""

    pagination_class = NewestFirstPagination

    @extend_schema(operation_id="votes_list")
    def get(self, request: Request) -> Response:
        """List votes with what they are on, newest first."""
        return self.list(request)


class VoteExportView(_VotesView):
    """Everybody's thumbs as a table."""

    @extend_schema(
        operation_id="votes_export", responses={(200, "text/csv"): OpenApiTypes.STR}
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """Download votes as CSV, newest first; filters as for the list."""
        votes = self.filter_queryset(self.get_queryset())
        return csv_response(votes)


class VoteHandledView(_VotesView):
    """Whether a vote was dealt with."""

    @extend_schema(operation_id="votes_handle", request=None)
    def put(self, request: Request, vote_id: int) -> Response:
        """Mark a vote as dealt with."""
        found = self._found(vote_id)
        handle_votes(found, by=caller(request))
        return Response(VoteSummarySerializer(found.get()).data)

    @extend_schema(
        operation_id="votes_reopen", request=None, responses=VoteSummarySerializer
    )
    def delete(self, request: Request, vote_id: int) -> Response:
        """Take that back: the vote is open again."""
        found = self._found(vote_id)
        reopen_votes(found)
        return Response(VoteSummarySerializer(found.get()).data)

    def _found(self, vote_id: int) -> QuerySet[Vote]:
        """Return the vote as a query.

        Raises:
            VoteNotFoundError: There is none that the reviewer may see.
        """
        found = self.get_queryset().filter(pk=vote_id)
        if not found.exists():
            raise VoteNotFoundError(f"There is no vote {vote_id}.")
        return found


def csv_response(votes: QuerySet[Vote]) -> StreamingHttpResponse:
    """Return a download of votes, streamed."""
    return StreamingHttpResponse(
        csv_lines(votes),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="votes.csv"'},
    )


_NOTHING_SAID = {"reasons": [], "comment": "", "expected_answer": ""}
