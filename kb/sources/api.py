from typing import Any

from django.db.models import Prefetch
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.mixins import RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import rest
from accounts.roles import IsCuratorSomewhere, caller
from kb.exceptions import SourceNotFoundError
from kb.interface.api import (
    AudienceField,
    InBaseSerializer,
    KnowledgeBaseField,
    KnowledgeBaseFilter,
    ReferringSerializer,
)
from kb.sources import services
from kb.sources.kinds import KINDS
from kb.sources.models import (
    MAX_HOURS,
    FollowedDocument,
    FollowedSource,
    FollowedSourceQuerySet,
    FollowRule,
)
from kb.sources.services import (
    Following,
    Rule,
    amend_source,
    check_now,
    follow_source,
    unfollow_source,
)


class RuleSerializer(serializers.ModelSerializer[FollowRule]):
    """Which audience sees the documents of a group."""

    audience = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)

    class Meta:
        model = FollowRule
        fields = ["group", "audience"]


class LeftOutSerializer(rest.ShownSerializer[FollowedDocument]):
    """A document that was not imported, or not completely, with the reason."""

    class Meta:
        model = FollowedDocument
        fields = ["key", "title", "document", "error", "note"]


_MAX_LEFT_OUT = 50


class FollowedSourceSerializer(ReferringSerializer):
    """A followed source with the result of its last check."""

    rules = RuleSerializer(many=True, read_only=True)
    job = serializers.UUIDField(
        source="job_id",
        read_only=True,
        allow_null=True,
        help_text="The latest check: progress, cancel, retry.",
    )
    counts = serializers.DictField(child=serializers.IntegerField(), read_only=True)

    left_out = LeftOutSerializer(
        many=True,
        read_only=True,
        help_text="The documents that could not be read (`error`), or not completely "
        f"(`note`); the first {_MAX_LEFT_OUT} by key, as far as you may see them.",
    )

    class Meta:
        model = FollowedSource
        fields = [
            "id", "name", "kind", "address", "knowledge_base", "rules", "every_hours",
            "credential", "is_active", "owner", "job", "checked_at", "next_check_at",
            "counts", "left_out", "note", "error",
        ]  # fmt: skip


class NewRuleSerializer(rest.StrictSerializer):
    """Which audience is to see the documents of a group."""

    group = rest.StrictCharField(
        max_length=services.GROUP_LIMIT,
        default="",
        allow_blank=True,
        help_text="A folder, space, section or label; `*` or empty is everything.",
    )
    audience = AudienceField()


class RulesField(rest.StrictListField):
    """Which audiences are to see which documents: a list of `Rule`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            child=NewRuleSerializer(),
            min_length=1,
            max_length=services.MAX_RULES,
            help_text="The first match decides; documents without one stay out.",
            **options,
        )

    def to_internal_value(self, data: Any) -> list[Rule]:
        return [Rule(**rule) for rule in super().to_internal_value(data)]


class FollowedSourceChangesSerializer(rest.StrictSerializer):
    """The settings to change; the others stay."""

    name = rest.StrictCharField(max_length=services.NAME_LIMIT, required=False)
    address = rest.StrictCharField(max_length=services.ADDRESS_LIMIT, required=False)
    rules = RulesField(required=False)
    every_hours = rest.StrictIntegerField(
        min_value=1, max_value=MAX_HOURS, required=False
    )
    credential = rest.StrictCharField(
        max_length=100,
        required=False,
        allow_blank=True,
        help_text="The name of the environment variable that holds it.",
    )
    is_active = rest.StrictBooleanField(
        required=False, help_text="Whether it is read on schedule."
    )


class NewFollowedSourceSerializer(InBaseSerializer, FollowedSourceChangesSerializer):
    """A source to follow, by default on schedule every 24 hours."""

    name = rest.StrictCharField(max_length=services.NAME_LIMIT)
    kind = serializers.ChoiceField(choices=sorted(KINDS))
    address = rest.StrictCharField(max_length=services.ADDRESS_LIMIT)
    knowledge_base = KnowledgeBaseField(
        required=False, help_text="By default the only one there is."
    )
    rules = RulesField()


class CheckSerializer(rest.StrictSerializer):
    """How a source is checked."""

    accept_loss = rest.StrictBooleanField(
        default=False,
        help_text="Propose what is missing for retirement, even if that is most of it.",
    )


class FollowedSourceFilter(rest.StrictFilterSet):
    knowledge_base = KnowledgeBaseFilter()


@extend_schema_view(
    list=extend_schema(summary="List followed sources"),
    retrieve=extend_schema(summary="Read a followed source"),
)
class FollowedSourceViewSet(RetrieveModelMixin, rest.RowViewSet[FollowedSource]):
    """Sources that are read again on a schedule, newest first; for curators."""

    permission_classes = [IsCuratorSomewhere]
    serializer_class = FollowedSourceSerializer
    filterset_class = FollowedSourceFilter
    not_found = SourceNotFoundError
    lookup_url_kwarg = "source_id"

    def get_queryset(self) -> FollowedSourceQuerySet:
        user = self.request.user
        left_out = FollowedDocument.objects.left_out().visible_to(user).order_by("key")
        return (
            FollowedSource.objects.visible_to(user)
            .select_related("knowledge_base", "owner")
            .prefetch_related(
                "rules__audience",
                Prefetch("documents", left_out[:_MAX_LEFT_OUT], to_attr="left_out"),
            )
        )

    @extend_schema(
        summary="Follow a source",
        request=NewFollowedSourceSerializer,
        responses={201: FollowedSourceSerializer},
    )
    def create(self, request: Request) -> Response:
        """Follow a source from now on; if it is active, it is read at once."""
        values = self.validated(NewFollowedSourceSerializer)
        source = follow_source(Following(**values), by=caller(request))
        self.kwargs["source_id"] = source.pk
        return self.row_response(status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change how a source is followed",
        request=FollowedSourceChangesSerializer,
        responses=FollowedSourceSerializer,
    )
    def partial_update(self, request: Request, source_id: int) -> Response:
        """Change the given settings; from now on it is read on behalf of the caller.

        Documents that get another audience take their entries along at the next check.
        """
        changes = self.validated(FollowedSourceChangesSerializer)
        amend_source(source_id, by=caller(request), **changes)
        return self.row_response()

    @extend_schema(summary="Unfollow a source", responses={204: None})
    def destroy(self, request: Request, source_id: int) -> Response:
        """Stop following a source; its documents and entries stay."""
        unfollow_source(source_id, by=caller(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        summary="Check a followed source now",
        request=CheckSerializer,
        responses={202: FollowedSourceSerializer},
    )
    @action(detail=True, methods=["post"])
    def check(self, request: Request, source_id: int) -> Response:
        """Queue a check, unless one is queued, and return the source with its job."""
        given = self.validated(CheckSerializer)
        check_now(source_id, by=caller(request), **given)
        return self.row_response(status=status.HTTP_202_ACCEPTED)
