"""Gaps over REST, for experts."""

from typing import Any

import django_filters
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from accounts.filters import IsSetFilter, NonEmptyForm, SlugFilter
from accounts.pagination import NewestFirstPagination
from accounts.roles import IsAgent, IsSME, caller
from qa.exceptions import GapNotFoundError
from qa.gaps import services as gaps
from qa.gaps.escalation_models import Notice, NoticeQuerySet
from qa.gaps.escalations import Kept
from qa.gaps.models import Gap, GapQuerySet
from qa.gaps.notices import mark_read
from qa.gaps.reading import fetch_shown
from qa.gaps.serializers import (
    DismissSerializer,
    DraftSerializer,
    GapDetailSerializer,
    GapSerializer,
    LinkSerializer,
    NoticeSerializer,
    OwnerSerializer,
    ProposeSerializer,
)

_CLOSED = {409: OpenApiResponse(description="It is filled or dismissed.")}


class MostMissedFirstPagination(NewestFirstPagination):
    """Pages by impact, the greatest first."""

    ordering = ("-impact_score", "-pk")


class GapFilter(django_filters.FilterSet):
    """By how far it is from being answered, where, and who works on it."""

    state = django_filters.ChoiceFilter(choices=Gap.State.choices)
    knowledge_base = SlugFilter("knowledge_base__slug")
    owner = SlugFilter("owner__username")

    class Meta:
        model = Gap
        fields: list[str] = []
        form = NonEmptyForm


class _GapsView(GenericAPIView[Gap]):
    permission_classes = [IsSME]
    throttle_scope = "user"
    serializer_class = GapSerializer

    def get_queryset(self) -> GapQuerySet:
        seen = Gap.objects.visible_to(self.request.user).with_trend(timezone.now())
        return seen.select_related("knowledge_base", "owner", "embedding_model")

    def found(self, gap_id: int) -> Gap:
        """Return a gap as it now stands.

        Raises:
            GapNotFoundError: There is none that the user may see.
        """
        found = self.get_queryset().filter(pk=gap_id).first()
        if found is None:
            raise GapNotFoundError(f"There is no gap {gap_id}.")
        return found

    def answered(self, gap_id: int) -> Response:
        """Return what `found` finds as a response."""
        return Response(GapSerializer(self.found(gap_id)).data)

    def given(self, body: type[Serializer[Any]]) -> dict[str, Any]:
        """Return what was sent in."""
        read = body(data=self.request.data, context={"request": self.request})
        read.is_valid(raise_exception=True)
        return dict(read.validated_data)


class GapListView(_GapsView, ListAPIView[Gap]):
    """What is asked and not known."""

    pagination_class = MostMissedFirstPagination
    filterset_class = GapFilter

    @extend_schema(operation_id="gaps_list")
    def get(self, request: Request) -> Response:
        """List gaps, those that matter most first."""
        return self.list(request)


class GapView(_GapsView):
    """One gap."""

    @extend_schema(operation_id="gaps_read", responses=GapDetailSerializer)
    def get(self, request: Request, gap_id: int) -> Response:
        """Read one with its newest questions, before and after, and what is near."""
        found = self.found(gap_id)
        fetch_shown(found, caller(request))
        return Response(GapDetailSerializer(found).data)


class GapDraftView(_GapsView):
    """Writing what fills a gap."""

    @extend_schema(
        operation_id="gaps_draft",
        request=DraftSerializer,
        responses={200: GapSerializer, **_CLOSED},
    )
    def post(self, request: Request, gap_id: int) -> Response:
        """Write the answer as an entry; once verified, the questions are asked again."""
        given = self.given(DraftSerializer)
        kept = Kept(given.pop("audience"), verify=given.pop("verify"))
        gaps.draft(gap_id, by=caller(request), kept=kept, **given)
        return self.answered(gap_id)


class GapLinkView(_GapsView):
    """Naming what fills a gap."""

    @extend_schema(
        operation_id="gaps_link",
        request=LinkSerializer,
        responses={200: GapSerializer, **_CLOSED},
    )
    def post(self, request: Request, gap_id: int) -> Response:
        """Say that an entry which is there fills it."""
        given = self.given(LinkSerializer)
        gaps.link(gap_id, by=caller(request), entry_id=given["entry"])
        return self.answered(gap_id)


class GapProposeView(_GapsView):
    """Having entries proposed."""

    @extend_schema(
        operation_id="gaps_propose",
        request=ProposeSerializer,
        responses={200: GapSerializer, **_CLOSED},
    )
    def post(self, request: Request, gap_id: int) -> Response:
        """Have a language model propose entries that fill it; for curators."""
        gaps.propose(gap_id, by=caller(request), **self.given(ProposeSerializer))
        return self.answered(gap_id)


class GapDismissView(_GapsView):
    """Saying that there is nothing to fill."""

    @extend_schema(
        operation_id="gaps_dismiss",
        request=DismissSerializer,
        responses={200: GapSerializer, **_CLOSED},
    )
    def post(self, request: Request, gap_id: int) -> Response:
        """Say why it is no gap."""
        gaps.dismiss(gap_id, by=caller(request), **self.given(DismissSerializer))
        return self.answered(gap_id)


class GapReopenView(_GapsView):
    """Taking back what was done about a gap."""

    @extend_schema(operation_id="gaps_reopen", request=None)
    def post(self, request: Request, gap_id: int) -> Response:
        """Open it again, whatever was drafted, filled or dismissed."""
        gaps.reopen(gap_id, by=caller(request))
        return self.answered(gap_id)


class GapOwnerView(_GapsView):
    """Who works on a gap."""

    @extend_schema(
        operation_id="gaps_assign", request=OwnerSerializer, responses=GapSerializer
    )
    def put(self, request: Request, gap_id: int) -> Response:
        """Say which expert works on it, or that nobody does."""
        gaps.assign(gap_id, by=caller(request), **self.given(OwnerSerializer))
        return self.answered(gap_id)


# Notices over REST: what became of one's own questions.


class _NoticesView(GenericAPIView[Notice]):
    permission_classes = [IsAgent]
    throttle_scope = "user"
    serializer_class = NoticeSerializer

    def get_queryset(self) -> NoticeQuerySet:
        own = Notice.objects.of(self.request.user)
        return own.select_related("answer", "repeat__after")


class NoticeFilter(django_filters.FilterSet):
    """By whether it was read."""

    is_read = IsSetFilter("read_at")

    class Meta:
        model = Notice
        fields: list[str] = []
        form = NonEmptyForm


class NoticeListView(_NoticesView, ListAPIView[Notice]):
    """What became of one's own questions."""

    pagination_class = NewestFirstPagination
    filterset_class = NoticeFilter

    @extend_schema(operation_id="notices_list")
    def get(self, request: Request) -> Response:
        """List one's own notices, newest first."""
        return self.list(request)


class NoticeReadView(_NoticesView):
    """That a notice was read."""

    @extend_schema(operation_id="notices_mark_read", request=None)
    def put(self, request: Request, notice_id: int) -> Response:
        """Mark one of one's own as read."""
        mark_read(by=caller(request), notice_id=notice_id)
        return Response(NoticeSerializer(self.get_queryset().get(pk=notice_id)).data)
