"""Notices over REST: what became of one's own questions."""

from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.pagination import NewestFirstPagination
from accounts.roles import IsAgent
from kb.api.permissions import caller
from qa.api.filters import NoticeFilter
from qa.gap_serializers import NoticeSerializer
from qa.models import Notice
from qa.models.notice import NoticeQuerySet
from qa.services.notices import mark_read


class _NoticesView(GenericAPIView[Notice]):
    permission_classes = [IsAgent]
    throttle_scope = "user"
    serializer_class = NoticeSerializer

    def get_queryset(self) -> NoticeQuerySet:
        """One's own."""
        own = Notice.objects.of(self.request.user)
        return own.select_related("answer", "repeat__after")


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
