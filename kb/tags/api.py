"""Tags over REST: what knowledge is divided by, and who knows of it."""

from typing import Any

from django.core.validators import validate_slug
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView, get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.status import HTTP_200_OK, HTTP_201_CREATED

from accounts.strict_fields import StrictCharField, StrictSerializer
from kb.interface.api import AgentReadsCuratorWrites, UserField
from kb.tags.models import Tag
from kb.tags.services import create_tag, edit_tag


class TagSerializer(serializers.Serializer[Any]):
    """A tag with the names of its experts."""

    slug = serializers.CharField()
    name = serializers.CharField()
    facet = serializers.ChoiceField(Tag.Facet.choices)
    experts = serializers.SerializerMethodField(help_text="User names, sorted.")

    def get_experts(self, tag: Tag) -> list[str]:
        """Return who reviews what is asked of it."""
        return sorted(user.get_username() for user in tag.experts.all())


class TagChangesSerializer(StrictSerializer):
    """What to change; what is left out stays."""

    name = StrictCharField(max_length=100, required=False)
    experts = serializers.ListField(
        child=UserField(), required=False, max_length=200, help_text="User names."
    )


class NewTagSerializer(TagChangesSerializer):
    """A tag to be made."""

    slug = StrictCharField(max_length=50, validators=[validate_slug])
    name = StrictCharField(max_length=100)
    facet = serializers.ChoiceField(Tag.Facet.choices)


class _TagsView(GenericAPIView[Tag]):
    permission_classes = [AgentReadsCuratorWrites]
    throttle_scope = "user"
    serializer_class = TagSerializer
    pagination_class = None

    def get_queryset(self) -> QuerySet[Tag]:
        return Tag.objects.prefetch_related("experts")

    def shown(self, tag: Tag, status: int = HTTP_200_OK) -> Response:
        found = self.get_queryset().get(pk=tag.pk)
        return Response(TagSerializer(found).data, status)


class TagListView(_TagsView):
    """All of them: there are dozens, not thousands."""

    @extend_schema(operation_id="tags_list", responses=TagSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List tags by facet and slug."""
        return Response(TagSerializer(self.get_queryset(), many=True).data)

    @extend_schema(
        operation_id="tags_create",
        request=NewTagSerializer,
        responses={
            201: TagSerializer,
            409: OpenApiResponse(description="The slug is taken."),
        },
    )
    def post(self, request: Request) -> Response:
        """Make a tag."""
        given = NewTagSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        return self.shown(create_tag(**given.validated_data), HTTP_201_CREATED)


class TagView(_TagsView):
    """One of them."""

    @extend_schema(
        operation_id="tags_change",
        request=TagChangesSerializer,
        responses=TagSerializer,
    )
    def patch(self, request: Request, slug: str) -> Response:
        """Rename a tag, or say who knows of it."""
        given = TagChangesSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        tag = get_object_or_404(Tag, slug=slug)
        return self.shown(edit_tag(tag, **given.validated_data))
