"""What is due for review, and putting it off."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import IsSME, caller
from accounts.strict_fields import StrictIntegerField, StrictSerializer
from kb.entries.due import REASON_CHOICES, Place, Reason
from kb.entries.models import Entry
from kb.entries.serializers import DueEntrySerializer
from kb.exceptions import EntryNotFoundError
from kb.interface.api import AgentReadsCuratorWrites
from kb.upkeep.services import (
    POSTPONE_MOST_DAYS,
    due_entries,
    postpone_review,
    read_page,
)

_PAGE = 50
_MOST = 200


class _DueQuerySerializer(serializers.Serializer[Any]):
    whose = serializers.ChoiceField(choices=["all", "mine"], default="all")
    reason = serializers.ChoiceField(choices=REASON_CHOICES, required=False)
    after = serializers.CharField(
        required=False, max_length=100, help_text="`next` of the page before."
    )
    page_size = serializers.IntegerField(min_value=1, max_value=_MOST, default=_PAGE)

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


class DueEntryListView(GenericAPIView[Entry]):
    """What is due for review."""

    permission_classes = [IsSME]
    throttle_scope = "user"
    serializer_class = DuePageSerializer
    queryset = Entry.objects.none()
    filter_backends = []
    pagination_class = None

    @extend_schema(
        operation_id="entries_due",
        summary="List what is due for review",
        parameters=[_DueQuerySerializer],
        responses=DuePageSerializer,
    )
    def get(self, request: Request) -> Response:
        """Return what is due, the most used first, then what is due longest."""
        query = _DueQuerySerializer(data=request.query_params.dict())
        query.is_valid(raise_exception=True)
        asked = query.validated_data
        reason = asked.get("reason")
        entries = due_entries(
            caller(request),
            at=timezone.now(),
            mine=asked["whose"] == "mine",
            reason=Reason(reason) if reason else None,
        )
        page = read_page(entries, size=asked["page_size"], after=asked.get("after"))
        following = page.following.token() if page.following else None
        shown = DueEntrySerializer(page.entries, many=True).data
        return Response({"next": following, "results": shown})


class PostponementSerializer(StrictSerializer):
    """For how long."""

    days = StrictIntegerField(min_value=1, max_value=POSTPONE_MOST_DAYS)


class PostponedSerializer(serializers.Serializer[Any]):
    """Until when."""

    due_at = serializers.DateTimeField()


class EntryPostponeView(GenericAPIView[Entry]):
    """Postponement of one entry's review."""

    permission_classes = [AgentReadsCuratorWrites]
    throttle_scope = "user"
    serializer_class = PostponementSerializer
    queryset = Entry.objects.none()

    @extend_schema(
        operation_id="entries_postpone",
        summary="Postpone an entry's review",
        request=PostponementSerializer,
        responses=PostponedSerializer,
    )
    def post(self, request: Request, entry_id: int) -> Response:
        """Keep an entry out of the queue for some days; it answers as before."""
        user = caller(request)
        if not Entry.objects.visible_to(user).filter(pk=entry_id).exists():
            raise EntryNotFoundError(f"There is no entry {entry_id} that you may see.")
        body = PostponementSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        row = postpone_review(
            entry_id=entry_id, by=user, days=body.validated_data["days"]
        )
        return Response({"due_at": row.due_at})
