"""Gaps and escalations over REST for experts; notices for those who asked."""

from uuid import UUID

import django_filters
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.status import HTTP_201_CREATED

from accounts.pagination import NewestFirstPagination
from accounts.rest import IsSetFilter, RowViewSet, SlugFilter, StrictFilterSet
from accounts.roles import IsAgent, IsSMESomewhere
from kb.interface.api import KnowledgeBaseFilter
from qa.answers.submitted_text import EntryOptions
from qa.exceptions import EscalationNotFoundError, GapNotFoundError, NoticeNotFoundError
from qa.gaps import escalations, services
from qa.gaps.escalation_models import Escalation, Notice
from qa.gaps.models import Gap
from qa.gaps.notices import mark_read
from qa.gaps.serializers import (
    DismissSerializer,
    DraftSerializer,
    EscalationSerializer,
    GapDetailSerializer,
    GapSerializer,
    LinkSerializer,
    NoteSerializer,
    NoticeSerializer,
    OwnerSerializer,
    ProposeSerializer,
    ReasonSerializer,
    ReplySerializer,
    TakeSerializer,
)

_GAP_OR_CLOSED = {200: GapSerializer, 409: "It is filled or dismissed."}
_ESCALATION_OR_ENDED = {
    200: EscalationSerializer,
    409: "It is answered or closed already.",
}


class MostMissedFirstPagination(NewestFirstPagination):
    ordering = ("-impact_score", "-pk")


class GapFilter(StrictFilterSet):
    state = django_filters.ChoiceFilter(choices=Gap.State.choices)
    knowledge_base = KnowledgeBaseFilter()
    owner = SlugFilter(method="filter_owner", label="The expert's user name.")

    def filter_owner(
        self, gaps: QuerySet[Gap], _name: str, username: str
    ) -> QuerySet[Gap]:
        # As in `UserField`, an inactive user is treated like an unknown one.
        named = User.objects.filter(username=username)
        seen = Gap.objects.visible_to(self.request.user)  # type: ignore[union-attr]  # a view's
        owned = seen.filter(owner__in=named)
        if not (named.filter(is_active=True).exists() or owned.exists()):
            said = f"There is no active user {username[:80]!a}."
            raise ValidationError({"owner": [said]})
        return gaps.filter(owner__username=username)


class GapViewSet(RowViewSet[Gap]):
    """Gaps: unanswered questions grouped by meaning, those of greatest impact first."""

    permission_classes = [IsSMESomewhere]
    serializer_class = GapSerializer
    pagination_class = MostMissedFirstPagination
    filterset_class = GapFilter
    lookup_url_kwarg = "gap_id"
    not_found = GapNotFoundError

    def get_queryset(self) -> QuerySet[Gap]:
        seen = Gap.objects.visible_to(self.request.user).with_trend(timezone.now())
        return seen.select_related("knowledge_base", "owner", "embedding_model")

    @extend_schema(responses=GapDetailSerializer)
    def retrieve(self, request: Request, gap_id: int) -> Response:
        """Return a gap with its newest questions and the nearest entries."""
        found = self.get_object()
        services.fetch_shown(found, self.user)
        return Response(GapDetailSerializer(found).data)

    @extend_schema(request=DraftSerializer, responses=_GAP_OR_CLOSED)
    @action(detail=True, methods=["post"])
    def draft(self, request: Request, gap_id: int) -> Response:
        """Write the answer as an entry; verifying it asks the questions again."""
        given = self.validated(DraftSerializer)
        options = EntryOptions(given.pop("audience"), verify=given.pop("verify"))
        services.draft(gap_id, by=self.user, options=options, **given)
        return self.row_response()

    @extend_schema(request=LinkSerializer, responses=_GAP_OR_CLOSED)
    @action(detail=True, methods=["post"])
    def link(self, request: Request, gap_id: int) -> Response:
        """Link an existing entry that fills the gap."""
        entry_id = self.validated(LinkSerializer)["entry"]
        services.link(gap_id, by=self.user, entry_id=entry_id)
        return self.row_response()

    @extend_schema(request=ProposeSerializer, responses=_GAP_OR_CLOSED)
    @action(detail=True, methods=["post"])
    def propose(self, request: Request, gap_id: int) -> Response:
        """Have a language model propose entries that fill the gap; for curators."""
        services.propose(gap_id, by=self.user, **self.validated(ProposeSerializer))
        return self.row_response()

    @extend_schema(request=DismissSerializer, responses=_GAP_OR_CLOSED)
    @action(detail=True, methods=["post"])
    def dismiss(self, request: Request, gap_id: int) -> Response:
        """Dismiss the gap, with a reason."""
        services.dismiss(gap_id, by=self.user, **self.validated(DismissSerializer))
        return self.row_response()

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    def reopen(self, request: Request, gap_id: int) -> Response:
        """Reopen the gap, whether it is drafted, filled or dismissed."""
        services.reopen(gap_id, by=self.user)
        return self.row_response()

    @extend_schema(
        operation_id="gaps_assign",
        request=OwnerSerializer,
        responses={
            200: GapSerializer,
            409: "You assign it to yourself, but somebody else has it "
            "(`assigned_elsewhere`): send `take_over`.",
        },
    )
    @action(detail=True, methods=["put"])
    def owner(self, request: Request, gap_id: int) -> Response:
        """Assign the gap to an expert, or to nobody."""
        services.assign(gap_id, by=self.user, **self.validated(OwnerSerializer))
        return self.row_response()


class EscalationFilter(StrictFilterSet):
    state = django_filters.ChoiceFilter(choices=Escalation.State.choices)
    answer = django_filters.UUIDFilter(
        "answer_id", label="The id of the answer that was sent."
    )


class EscalationViewSet(RowViewSet[Escalation]):
    """The user's own escalations, newest first; experts see everybody's."""

    permission_classes = [IsAgent]
    serializer_class = EscalationSerializer
    filterset_class = EscalationFilter
    lookup_url_kwarg = "escalation_id"
    not_found = EscalationNotFoundError

    def get_queryset(self) -> QuerySet[Escalation]:
        seen = Escalation.objects.visible_to(self.request.user)
        return seen.select_related("answer", "raised_by", "assignee", "replied_by")

    @extend_schema(
        request=NoteSerializer,
        responses={201: EscalationSerializer, 409: "It was sent before."},
    )
    def escalate(self, request: Request, answer_id: UUID) -> Response:
        """Send one's own question, refused or wrongly answered, to the experts."""
        note = self.validated(NoteSerializer)["note"]
        made = escalations.escalate(answer_id, user=self.user, note=note)
        return self.row_response(made, HTTP_201_CREATED)

    def retrieve(self, request: Request, escalation_id: int) -> Response:
        """Return an escalation; opening the reply to one's own marks it as read."""
        found = self.get_object()
        escalations.mark_read(found.answer, by=self.user)
        return self.row_response(found)

    @extend_schema(request=ReplySerializer, responses=_ESCALATION_OR_ENDED)
    @action(detail=True, methods=["post"], permission_classes=[IsSMESomewhere])
    def reply(self, request: Request, escalation_id: int) -> Response:
        """Reply to the asker and, if `keep` is given, keep the reply as an entry.

        Alternatively, reply with `entry`, an existing entry that answers the question.
        """
        given = self.validated(ReplySerializer)
        keep = EntryOptions(**given["keep"]) if given["keep"] else None
        escalations.reply(
            escalation_id,
            by=self.user,
            text=given["text"],
            keep=keep,
            entry_id=given["entry"],
        )
        return self.row_response()

    @extend_schema(request=ReasonSerializer, responses=_ESCALATION_OR_ENDED)
    @action(detail=True, methods=["post"], permission_classes=[IsSMESomewhere])
    def close(self, request: Request, escalation_id: int) -> Response:
        """Close the escalation without an answer; the asker reads the reason."""
        escalations.close(
            escalation_id, by=self.user, **self.validated(ReasonSerializer)
        )
        return self.row_response()

    @extend_schema(
        operation_id="escalations_take",
        request=TakeSerializer,
        responses={
            200: EscalationSerializer,
            409: "It is answered or closed already, or somebody else has it "
            "(`assigned_elsewhere`): send `take_over`.",
        },
    )
    @action(detail=True, methods=["put"], permission_classes=[IsSMESomewhere])
    def assignee(self, request: Request, escalation_id: int) -> Response:
        """Assign it to oneself; from somebody else only with `take_over`."""
        given = self.validated(TakeSerializer)
        escalations.assign(escalation_id, to=self.user, by=self.user, **given)
        return self.row_response()

    @extend_schema(operation_id="escalations_release", responses=_ESCALATION_OR_ENDED)
    @assignee.mapping.delete
    def unassign(self, request: Request, escalation_id: int) -> Response:
        """Release it to all experts, whoever it is assigned to."""
        escalations.assign(escalation_id, to=None, by=self.user)
        return self.row_response()


class NoticeFilter(StrictFilterSet):
    is_read = IsSetFilter("read_at")


class NoticeViewSet(RowViewSet[Notice]):
    """Notices about the user's own questions and entries, newest first."""

    permission_classes = [IsAgent]
    serializer_class = NoticeSerializer
    filterset_class = NoticeFilter
    lookup_url_kwarg = "notice_id"
    not_found = NoticeNotFoundError

    def get_queryset(self) -> QuerySet[Notice]:
        own = Notice.objects.of(self.request.user)
        return own.select_related("answer", "repeat__after")

    @extend_schema(operation_id="notices_mark_read", request=None)
    @action(detail=True, methods=["put"])
    def read(self, request: Request, notice_id: int) -> Response:
        """Mark one of the user's own notices as read."""
        mark_read(by=self.user, notice_id=notice_id)
        return self.row_response()
