"""The inbox over REST, and flagging an entry, which puts it there."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import rest
from accounts.roles import IsAgent, IsSMESomewhere, caller
from kb.interface.api import KnowledgeBaseField
from kb.upkeep.models import Flag
from kb.upkeep.services import FLAG_NOTE_LIMIT
from qa.inbox.items import Item
from qa.inbox.models import Kind
from qa.inbox.services import COUNTED, MAX_LISTED, flag_entry, read_inbox
from qa.inbox.waiting import Scope

_PAGE_SIZE = 25
_MAX_PAGE_SIZE = 100


class _InboxQuerySerializer(serializers.Serializer[Any]):
    whose = serializers.ChoiceField(
        choices=[scope.value for scope in Scope], default=Scope.WAITING.value
    )
    kind = serializers.ChoiceField(choices=Kind.choices, required=False)
    knowledge_base = KnowledgeBaseField(required=False, help_text="Its slug.")
    page = serializers.IntegerField(min_value=1, max_value=MAX_LISTED, default=1)
    page_size = serializers.IntegerField(
        min_value=1, max_value=_MAX_PAGE_SIZE, default=_PAGE_SIZE
    )


class InboxItemSerializer(serializers.Serializer[Item]):
    """An item of the inbox."""

    kind = serializers.ChoiceField(choices=Kind.choices)
    id = serializers.IntegerField(source="subject")
    title = serializers.CharField()
    note = serializers.CharField()
    why = serializers.CharField(help_text="Why it is in the caller's inbox.")
    since = serializers.DateTimeField()
    knowledge_base = serializers.CharField(source="knowledge_base.slug")
    address = serializers.CharField(help_text="Path of the page where it is handled.")
    assignee = serializers.CharField(
        source="assignee.username", default=None, allow_null=True
    )
    snoozed_until = serializers.DateTimeField(allow_null=True)


class InboxSerializer(serializers.Serializer[Any]):
    """A page of the inbox."""

    counts = serializers.DictField(
        child=serializers.IntegerField(),
        help_text=f"How many of each kind there are; {COUNTED} means at least that.",
    )
    next = serializers.IntegerField(
        allow_null=True, help_text="The next page; null for the last."
    )
    results = InboxItemSerializer(many=True)


class FlagSerializer(rest.StrictSerializer):
    """What is wrong or out of date."""

    reasons = rest.StrictListField(
        child=serializers.ChoiceField(Flag.Reason.choices),
        default=list,
        max_length=len(Flag.Reason),
    )
    note = rest.StrictCharField(
        max_length=FLAG_NOTE_LIMIT, default="", allow_blank=True
    )


class FlagView(rest.KnownQueryView):
    """Flagging an entry as wrong or outdated."""

    permission_classes = [IsAgent]
    throttle_scope = "user"

    @extend_schema(
        operation_id="entries_flag",
        summary="Flag an entry as wrong or outdated",
        request=FlagSerializer,
        responses={
            200: FlagSerializer,
            404: "There is no such entry in use, or you may not see it.",
        },
    )
    def post(self, request: Request, entry_id: int) -> Response:
        """Make it due at once and notify those responsible; it answers as before.

        A second flag by the same user replaces the reasons and the note.
        """
        given = rest.validated(FlagSerializer, request.data)
        flag = flag_entry(entry_id=entry_id, by=caller(request), **given)
        return Response(FlagSerializer(flag).data)


class InboxView(rest.KnownQueryView):
    """What waits for the caller; kinds that their role does not handle are left out."""

    permission_classes = [IsSMESomewhere]
    throttle_scope = "user"

    @extend_schema(
        operation_id="inbox_list",
        summary="List what waits for me",
        parameters=[_InboxQuerySerializer],
        responses=InboxSerializer,
    )
    def get(self, request: Request) -> Response:
        """Return your own items first, then by kind, each from the longest waiting."""
        given = rest.validated(_InboxQuerySerializer, request.query_params.dict())
        user = caller(request)
        kind = Kind(given["kind"]) if "kind" in given else None
        page = read_inbox(
            user,
            scope=Scope(given["whose"]),
            kind=kind,
            base=given.get("knowledge_base"),
            page=given["page"],
            size=given["page_size"],
        )
        shown = {
            "counts": page.counts,
            "next": given["page"] + 1 if page.has_more else None,
            "results": page.items,
        }
        return Response(InboxSerializer(shown).data)
