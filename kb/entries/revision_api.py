from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import caller
from kb.audiences.models import Audience
from kb.entries.models import Entry, Revision
from kb.entries.states import restore_revision
from kb.interface.api import AgentReadsCuratorWrites

from .api import (
    ETAG,
    IF_MATCH,
    STALE,
    expected_revision,
    find_entry,
    guarded,
    shown_entry,
)
from .serializers import ActionSerializer, EntrySerializer, RevisionSerializer


@extend_schema_view(
    get=extend_schema(
        operation_id="entries_revisions", summary="List what an entry ever said"
    )
)
class EntryRevisionListView(ListAPIView[Revision]):
    """Everything that one entry ever was, newest first."""

    permission_classes = [AgentReadsCuratorWrites]
    throttle_scope = "user"
    serializer_class = RevisionSerializer
    filter_backends = []

    def get_queryset(self) -> QuerySet[Revision]:
        if getattr(self, "swagger_fake_view", False):
            return Revision.objects.none()
        entry = find_entry(self.request, self.kwargs["entry_id"])
        return entry.revisions.select_related(
            "author", "verified_by", "owner", "audience", "document", "section"
        )

    def get_serializer_context(self) -> dict[str, Any]:
        """Tell the serializer which audiences the caller may know of."""
        audiences = Audience.objects.visible_to(self.request.user)
        visible = set(audiences.values_list("pk", flat=True))
        return {**super().get_serializer_context(), "audiences": visible}


class RevisionRestoreView(GenericAPIView[Entry]):
    """Return of one entry to an earlier revision."""

    permission_classes = [AgentReadsCuratorWrites]
    throttle_scope = "user"
    serializer_class = EntrySerializer
    queryset = Entry.objects.none()

    @extend_schema(
        operation_id="entries_revisions_restore",
        summary="Restore an earlier revision",
        parameters=[IF_MATCH, ETAG],
        request=ActionSerializer,
        responses={200: EntrySerializer, **STALE},
    )
    def post(self, request: Request, entry_id: int, number: int) -> Response:
        """Let an entry say again what it said, as its next revision.

        Who may see it and who looks after it stay as they are. A verified entry is then
        verified by the caller.
        """
        entry = find_entry(request, entry_id)
        body = ActionSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        guarded(
            request,
            restore_revision,
            entry_id=entry.pk,
            number=number,
            by=caller(request),
            may_verify=True,
            reason=body.validated_data["reason"],
            expected_revision=expected_revision(request, dict(body.validated_data)),
        )
        return shown_entry(request, entry_id)
