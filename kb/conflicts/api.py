from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import rest
from accounts.roles import IsCuratorSomewhere, caller
from kb.conflicts.models import Conflict, ConflictQuerySet
from kb.entries.models import Entry
from kb.entries.values import REASON_LIMIT
from kb.interface.api import ConflictFilter
from kb.upkeep.conflict_resolution import ACTIONS, resolve_conflict


class ConflictEntrySerializer(rest.ShownSerializer[Entry]):
    """One of the two entries, in its current state."""

    document = rest.optional_text("document.title")
    verified_by = rest.username_field("verified_by")

    class Meta:
        model = Entry
        fields = [
            "id", "question", "text", "state", "document", "verified_by", "verified_at",
            "updated_at",
        ]  # fmt: skip


class ConflictReasonSerializer(serializers.Serializer[dict[str, Any]]):
    """Why the entries contradict each other, with character offsets, end excluded."""

    signal = serializers.CharField()
    why = serializers.CharField()
    first = serializers.ListField(
        child=serializers.IntegerField(), allow_null=True, help_text="[start, end]"
    )
    second = serializers.ListField(
        child=serializers.IntegerField(), allow_null=True, help_text="[start, end]"
    )


class ConflictSerializer(rest.ShownSerializer[Conflict]):
    """Two entries that duplicate or contradict each other."""

    first = ConflictEntrySerializer()
    second = ConflictEntrySerializer()
    reasons = serializers.SerializerMethodField()
    kept = serializers.IntegerField(
        source="kept_id", allow_null=True, help_text="The entry that stayed."
    )
    resolved_by = rest.username_field("resolved_by")

    class Meta:
        model = Conflict
        fields = [
            "id", "kind", "score", "distance", "state", "first", "second",
            "first_revision", "second_revision", "reasons", "kept", "resolved_by",
            "resolved_at", "reason", "found_at",
        ]  # fmt: skip

    @extend_schema_field(ConflictReasonSerializer(many=True))
    def get_reasons(self, conflict: Conflict) -> list[dict[str, Any]]:
        def place(span: dict[str, int] | None) -> list[int] | None:
            return [span["start"], span["end"]] if span else None

        return [
            {
                "signal": reason["signal"],
                "why": reason["why"],
                "first": place(reason["first"]),
                "second": place(reason["second"]),
            }
            for reason in conflict.reasons
        ]


class ResolutionSerializer(rest.StrictSerializer):
    """How a conflict is resolved."""

    action = serializers.ChoiceField(
        choices=[(action, action) for action in ACTIONS],
        help_text="merge: one stays, the other is retired; keep_both: no conflict; "
        "override: one is right, the other goes to review; retire_other: one is right, "
        "the other is retired.",
    )
    keep = rest.StrictIntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=2**63 - 1,
        help_text="Id of the entry that stays; not for keep_both.",
    )
    reason = rest.StrictCharField(
        max_length=REASON_LIMIT,
        allow_blank=True,
        required=False,
        default="",
        help_text="Required except for merge.",
    )
    text = rest.StrictCharField(
        allow_blank=True,
        required=False,
        default="",
        help_text="For merge: the new text of the entry that stays; empty leaves it "
        "unchanged.",
    )


@extend_schema_view(list=extend_schema(summary="List duplicates and contradictions"))
class ConflictViewSet(rest.RowViewSet[Conflict]):
    """Conflicts of which the caller may see both entries, newest first."""

    permission_classes = [IsCuratorSomewhere]
    serializer_class = ConflictSerializer
    filterset_class = ConflictFilter
    ordering = ("-found_at", "-pk")
    lookup_url_kwarg = "conflict_id"

    def get_queryset(self) -> ConflictQuerySet:
        sides = [
            f"{side}__{name}"
            for side in ("first", "second")
            for name in ("document", "verified_by")
        ]
        return (
            Conflict.objects.visible_to(self.request.user)
            .select_related(*sides, "resolved_by")
            .defer("first__search_vector", "second__search_vector")
        )

    @extend_schema(summary="Resolve a conflict", request=ResolutionSerializer)
    @action(detail=True, methods=["post"])
    def resolve(self, request: Request, conflict_id: int) -> Response:
        """Merge, keep both, or choose the one that is right; 409 if no longer open."""
        given = {"keep": None, **self.validated(ResolutionSerializer)}
        resolve_conflict(conflict_id=conflict_id, by=caller(request), **given)
        return self.row_response()
