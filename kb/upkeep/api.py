"""Entries due for review, and postponing a review."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.rest import (
    ResourceViewSet,
    StrictIntegerField,
    StrictSerializer,
    validated,
)
from accounts.roles import IsSMESomewhere, caller
from kb.entries.due import REASON_CHOICES, Place, Reason
from kb.entries.models import Entry, EntryQuerySet
from kb.entries.serializers import DueEntrySerializer
from kb.exceptions import EntryNotFoundError
from kb.interface.api import AgentReadsCuratorWrites, KnowledgeBaseField
from kb.upkeep.services import (
    MAX_POSTPONE_DAYS,
    due_entries,
    postpone_review,
    read_page,
)

_PAGE_SIZE = 50
_MAX_PAGE_SIZE = 200


class _DueQuerySerializer(serializers.Serializer[Any]):
    whose = serializers.ChoiceField(choices=["all", "mine"], default="all")
    reason = serializers.ChoiceField(choices=REASON_CHOICES, required=False)
    knowledge_base = KnowledgeBaseField(required=False, help_text="Its slug.")
    after = serializers.CharField(
        required=False, max_length=100, help_text="`next` of the previous page."
    )
    page_size = serializers.IntegerField(
        min_value=1, max_value=_MAX_PAGE_SIZE, default=_PAGE_SIZE
    )

    def validate_after(self, value: str) -> Place:
        try:
            return Place.read(value)
        except ValueError as error:
            raise ValidationError(f"{error} Take it from `next`.") from error


class DuePageSerializer(serializers.Serializer[Any]):
    """A page of the queue."""

    next = serializers.CharField(
        allow_null=True, help_text="`after` of the next page; null for the last."
    )
    results = DueEntrySerializer(many=True)


class PostponementSerializer(StrictSerializer):
    """How long to postpone the review."""

    days = StrictIntegerField(min_value=1, max_value=MAX_POSTPONE_DAYS)


class PostponedSerializer(serializers.Serializer[Any]):
    """The end of the postponement."""

    due_at = serializers.DateTimeField()


class DueEntryViewSet(ResourceViewSet[Entry]):
    """Entries due for review, and postponing a review."""

    permission_classes = [AgentReadsCuratorWrites]
    serializer_class = DuePageSerializer
    filter_backends = []
    pagination_class = None
    not_found = EntryNotFoundError
    lookup_url_kwarg = "entry_id"

    def get_queryset(self) -> EntryQuerySet:
        return Entry.objects.visible_to(self.request.user)

    @extend_schema(
        summary="List entries due for review", parameters=[_DueQuerySerializer]
    )
    @action(detail=False, permission_classes=[IsSMESomewhere])
    def due(self, request: Request) -> Response:
        """Return the entries due for review, most used first, then longest due."""
        given = validated(_DueQuerySerializer, request.query_params.dict())
        reason = given.get("reason")
        entries = due_entries(
            caller(request),
            at=timezone.now(),
            mine=given["whose"] == "mine",
            reason=Reason(reason) if reason else None,
            base=given.get("knowledge_base"),
        )
        page = read_page(entries, size=given["page_size"], after=given.get("after"))
        following = page.following.token() if page.following else None
        shown = DueEntrySerializer(page.entries, many=True).data
        return Response({"next": following, "results": shown})

    @extend_schema(
        summary="Postpone an entry's review",
        request=PostponementSerializer,
        responses=PostponedSerializer,
    )
    @action(detail=True, methods=["post"])
    def postpone(self, request: Request, entry_id: int) -> Response:
        """Keep an entry out of the queue for some days; it is used as before."""
        entry = self.get_object()
        days = self.validated(PostponementSerializer)["days"]
        row = postpone_review(entry_id=entry.pk, by=caller(request), days=days)
        return Response({"due_at": row.due_at})
