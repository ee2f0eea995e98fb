from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.pagination import NewestFirstPagination
from accounts.roles import IsAgent
from qa.api.filters import AnswerFilter
from qa.exceptions import AnswerNotFoundError
from qa.models import Answer
from qa.serializers import AnswerSerializer, AnswerSummarySerializer, as_json


class AnswerListView(ListAPIView[Answer]):
    """Past questions."""

    permission_classes = [IsAgent]
    throttle_scope = "user"
    serializer_class = AnswerSummarySerializer
    pagination_class = NewestFirstPagination
    filterset_class = AnswerFilter

    def get_queryset(self) -> QuerySet[Answer]:
        """One's own; who reviews answers sees everybody's."""
        user = self.request.user
        return Answer.objects.visible_to(user).with_vote_of(user)

    @extend_schema(operation_id="answers_list")
    def get(self, request: Request) -> Response:
        """List one's own questions, newest first; sme and above see everybody's."""
        return self.list(request)


class AnswerView(GenericAPIView[Answer]):
    """One past question."""

    permission_classes = [IsAgent]
    throttle_scope = "user"
    serializer_class = AnswerSerializer

    @extend_schema(operation_id="answers_read")
    def get(self, request: Request, answer_id: UUID) -> Response:
        """Read an answer or refusal with its evidence and how it was decided."""
        user = request.user
        answers = Answer.objects.visible_to(user).with_vote_of(user)
        answer = answers.with_evidence(user).filter(pk=answer_id).first()
        if answer is None:
            msg = f"There is no answer {answer_id}."
            raise AnswerNotFoundError(msg)
        return Response(as_json(answer))
