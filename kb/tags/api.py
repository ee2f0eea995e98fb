"""Tags over REST: what knowledge is divided by, and who its experts are."""

from django.core.validators import validate_slug
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.status import HTTP_200_OK, HTTP_201_CREATED

from accounts.rest import (
    ResourceViewSet,
    StrictCharField,
    StrictModelSerializer,
    StrictSlugListField,
)
from kb.interface.api import AgentReadsCuratorWrites, UserField
from kb.tags.models import Tag
from kb.tags.services import create_tag, edit_tag


class TagSerializer(serializers.ModelSerializer[Tag]):
    """A tag with the names of its experts."""

    slug = serializers.CharField()
    name = serializers.CharField()
    experts = serializers.SerializerMethodField(help_text="User names, sorted.")

    class Meta:
        model = Tag
        fields = ["slug", "name", "facet", "experts"]

    def get_experts(self, tag: Tag) -> list[str]:
        return sorted(user.get_username() for user in tag.experts.all())


class TagChangesSerializer(StrictModelSerializer):
    """What to change; what is left out stays."""

    experts = StrictSlugListField(
        slug_field="username",
        queryset=UserField.queryset,
        required=False,
        max_length=200,
        help_text="User names.",
    )

    class Meta:
        model = Tag
        fields = ["name", "experts"]


class NewTagSerializer(TagChangesSerializer):
    """A tag to be made."""

    slug = StrictCharField(max_length=50, validators=[validate_slug])

    class Meta(TagChangesSerializer.Meta):
        fields = [*TagChangesSerializer.Meta.fields, "slug", "facet"]


class TagViewSet(ListModelMixin, ResourceViewSet[Tag]):
    """All tags by facet and slug: there are dozens, not thousands."""

    permission_classes = [AgentReadsCuratorWrites]
    serializer_class = TagSerializer
    pagination_class = None
    filter_backends = []
    lookup_field = "slug"
    lookup_value_converter = "slug"
    queryset = Tag.objects.prefetch_related("experts")

    @extend_schema(
        request=NewTagSerializer,
        responses={
            201: TagSerializer,
            409: OpenApiResponse(description="The slug is taken."),
        },
    )
    def create(self, request: Request) -> Response:
        """Make a tag."""
        made = create_tag(**self.validated(NewTagSerializer))
        return self._shown(made, HTTP_201_CREATED)

    @extend_schema(request=TagChangesSerializer)
    def partial_update(self, request: Request, slug: str) -> Response:
        """Rename a tag, or name its experts."""
        changes = self.validated(TagChangesSerializer)
        return self._shown(edit_tag(self.get_object(), **changes))

    def _shown(self, tag: Tag, status: int = HTTP_200_OK) -> Response:
        return Response(TagSerializer(self.get_queryset().get(pk=tag.pk)).data, status)
