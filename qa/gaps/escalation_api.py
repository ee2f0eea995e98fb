"""Escalations over REST: agents send refusals, experts reply."""

from uuid import UUID

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.status import HTTP_201_CREATED

from accounts.filters import NonEmptyForm
from accounts.pagination import NewestFirstPagination
from accounts.roles import IsAgent, IsSME, caller
from qa.exceptions import EscalationNotFoundError
from qa.gaps.escalation_models import Escalation
from qa.gaps.escalations import Kept, close, escalate, mark_read, release, reply, take
from qa.gaps.serializers import (
    EscalationSerializer,
    NoteSerializer,
    ReasonSerializer,
    ReplySerializer,
)

_ENDED = {409: OpenApiResponse(description="It has its reply already.")}


class EscalationFilter(django_filters.FilterSet):
    """By whether an expert replied."""

    state = django_filters.ChoiceFilter(choices=Escalation.State.choices)

    class Meta:
        model = Escalation
        fields: list[str] = []
        form = NonEmptyForm


class _EscalationsView(GenericAPIView[Escalation]):
    permission_classes = [IsAgent]
    throttle_scope = "user"
    serializer_class = EscalationSerializer

    def get_queryset(self) -> QuerySet[Escalation]:
        seen = Escalation.objects.visible_to(self.request.user)
        return seen.select_related("answer", "raised_by", "assignee", "replied_by")

    def found(self, escalation_id: int) -> Escalation:
        """Return an escalation as it now stands.

        Raises:
            EscalationNotFoundError: There is none that the user may see.
        """
        found = self.get_queryset().filter(pk=escalation_id).first()
        if found is None:
            raise EscalationNotFoundError(f"There is no escalation {escalation_id}.")
        return found

    def answered(self, escalation_id: int) -> Response:
        """Return what `found` finds as a response."""
        return Response(EscalationSerializer(self.found(escalation_id)).data)


class EscalateView(_EscalationsView):
    """Sending a refusal to the experts."""

    @extend_schema(
        operation_id="answers_escalate",
        request=NoteSerializer,
        responses={
            201: EscalationSerializer,
            409: OpenApiResponse(description="It was sent before."),
        },
    )
    def post(self, request: Request, answer_id: UUID) -> Response:
        """Send a refused question of one's own to the experts."""
        given = NoteSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        made = escalate(answer_id, user=caller(request), **given.validated_data)
        return Response(EscalationSerializer(made).data, HTTP_201_CREATED)


class EscalationListView(_EscalationsView, ListAPIView[Escalation]):
    """Refusals at the experts'."""

    pagination_class = NewestFirstPagination
    filterset_class = EscalationFilter

    @extend_schema(operation_id="escalations_list")
    def get(self, request: Request) -> Response:
        """List one's own, newest first; experts see everybody's."""
        return self.list(request)


class EscalationView(_EscalationsView):
    """One of them."""

    @extend_schema(operation_id="escalations_read")
    def get(self, request: Request, escalation_id: int) -> Response:
        """Read one; reading one's own reply marks it as read."""
        found = self.found(escalation_id)
        mark_read(found.answer, by=caller(request))
        return Response(EscalationSerializer(found).data)


class ReplyView(_EscalationsView):
    """An expert's reply."""

    permission_classes = [IsSME]

    @extend_schema(
        operation_id="escalations_reply",
        request=ReplySerializer,
        responses={200: EscalationSerializer, **_ENDED},
    )
    def post(self, request: Request, escalation_id: int) -> Response:
        """Reply to the asker, and keep the reply as an entry if `keep` says how."""
        given = ReplySerializer(data=request.data, context={"request": request})
        given.is_valid(raise_exception=True)
        keep = given.validated_data["keep"]
        reply(
            escalation_id,
            by=caller(request),
            text=given.validated_data["text"],
            keep=Kept(**keep) if keep else None,
        )
        return self.answered(escalation_id)


class CloseView(_EscalationsView):
    """An end without an answer."""

    permission_classes = [IsSME]

    @extend_schema(
        operation_id="escalations_close",
        request=ReasonSerializer,
        responses={200: EscalationSerializer, **_ENDED},
    )
    def post(self, request: Request, escalation_id: int) -> Response:
        """End it without an answer; the asker reads why."""
        given = ReasonSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        close(escalation_id, by=caller(request), **given.validated_data)
        return self.answered(escalation_id)


class AssigneeView(_EscalationsView):
    """Which expert works on it."""

    permission_classes = [IsSME]

    @extend_schema(
        operation_id="escalations_take",
        request=None,
        responses={200: EscalationSerializer, **_ENDED},
    )
    def put(self, request: Request, escalation_id: int) -> Response:
        """Say that one works on it."""
        take(escalation_id, by=caller(request))
        return self.answered(escalation_id)

    @extend_schema(
        operation_id="escalations_release",
        responses={200: EscalationSerializer, **_ENDED},
    )
    def delete(self, request: Request, escalation_id: int) -> Response:
        """Give it back to all experts."""
        release(escalation_id, by=caller(request))
        return self.answered(escalation_id)
