"""REST API of knowledge bases."""

from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.mixins import RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import rest
from accounts.roles import Role, caller, has_role_in
from kb.documents.knowledge_bases import (
    archive_knowledge_base,
    create_knowledge_base,
    edit_knowledge_base,
    unarchive_knowledge_base,
)
from kb.documents.models import KnowledgeBase, KnowledgeBaseQuerySet
from kb.exceptions import KnowledgeBaseNotFoundError
from kb.interface import api
from kb.text.cleaning import SLUG_LIMIT

_REVIEW = [
    "review_interval_days",
    "when_overdue",
    "overdue_grace_days",
    "keep_texts_days",
]


class KnowledgeBaseSerializer(rest.ShownSerializer[KnowledgeBase]):
    """A knowledge base with its settings and the caller's role in it."""

    is_default = serializers.BooleanField(help_text="Asked if a request names none.")
    role = serializers.SerializerMethodField(
        help_text="The caller's highest role in it: agent asks, curator writes."
    )

    class Meta:
        model = KnowledgeBase
        fields = [
            "slug", "name", "language", "is_default", "role", *_REVIEW, "archived_at",
        ]  # fmt: skip

    @extend_schema_field(serializers.ChoiceField(choices=[*Role]))
    def get_role(self, base: KnowledgeBase) -> str:
        user = caller(self.context["request"])
        return [role for role in Role if has_role_in(user, role, base.pk)][-1]


class KnowledgeBaseChangesSerializer(rest.StrictModelSerializer):
    """The fields to change; the others stay."""

    class Meta:
        model = KnowledgeBase
        fields = ["name", "language", *_REVIEW]


class NewKnowledgeBaseSerializer(KnowledgeBaseChangesSerializer):
    """A new knowledge base."""

    slug = rest.StrictCharField(
        max_length=SLUG_LIMIT, help_text="Identifies it in URLs; never changes."
    )

    class Meta(KnowledgeBaseChangesSerializer.Meta):
        fields = ["slug", *KnowledgeBaseChangesSerializer.Meta.fields]


class KnowledgeBaseListFilter(rest.StrictFilterSet):
    archived = rest.IsSetFilter(
        "archived_at", label="true: only archived ones; by default those in use."
    )


@extend_schema_view(
    list=extend_schema(summary="List knowledge bases"),
    retrieve=extend_schema(summary="Read a knowledge base"),
)
class KnowledgeBaseViewSet(RetrieveModelMixin, rest.RowViewSet[KnowledgeBase]):
    """Knowledge bases that the caller may ask, by slug; archived ones are read-only."""

    permission_classes = [api.AgentReadsAdminWrites]
    serializer_class = KnowledgeBaseSerializer
    ordering = ("slug",)
    filterset_class = KnowledgeBaseListFilter
    lookup_field = "slug"
    lookup_value_converter = "slug"
    not_found = KnowledgeBaseNotFoundError

    def get_queryset(self) -> KnowledgeBaseQuerySet:
        mine = KnowledgeBase.objects.of_role(self.request.user, Role.AGENT)
        if self.action == "list" and "archived" not in self.request.query_params:
            mine = mine.in_use()
        return mine.with_default()

    @extend_schema(
        summary="Create a knowledge base",
        request=NewKnowledgeBaseSerializer,
        responses={201: KnowledgeBaseSerializer, 409: "The slug is taken."},
    )
    def create(self, request: Request) -> Response:
        """Create an empty knowledge base, which questions name by its slug."""
        made = create_knowledge_base(**self.validated(NewKnowledgeBaseSerializer))
        shown = self.get_queryset().get(pk=made.pk)
        return self.row_response(shown, status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change a knowledge base", request=KnowledgeBaseChangesSerializer
    )
    def partial_update(self, request: Request, slug: str) -> Response:
        """Change given fields; a job applies a new review interval to the entries."""
        edit_knowledge_base(
            knowledge_base_id=self.get_object().pk,
            **self.validated(KnowledgeBaseChangesSerializer),
        )
        return self.row_response()

    @extend_schema(summary="Archive a knowledge base", request=None)
    @action(detail=True, methods=["post"])
    def archive(self, request: Request, slug: str) -> Response:
        """Make it read-only: it is neither asked nor changed, and none of it is due."""
        archive_knowledge_base(knowledge_base_id=self.get_object().pk)
        return self.row_response()

    @extend_schema(summary="Bring a knowledge base back from the archive", request=None)
    @action(detail=True, methods=["post"])
    def unarchive(self, request: Request, slug: str) -> Response:
        """Undo archiving."""
        unarchive_knowledge_base(knowledge_base_id=self.get_object().pk)
        return self.row_response()
