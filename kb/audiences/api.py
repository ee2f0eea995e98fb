from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.mixins import RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import rest
from accounts.people import group_names
from kb.audiences.models import Audience, AudienceQuerySet
from kb.audiences.services import create_audience, edit_audience
from kb.exceptions import AudienceNotFoundError
from kb.interface.api import AgentReadsAdminWrites
from kb.text.cleaning import SLUG_LIMIT


class AudienceSerializer(rest.ShownSerializer[Audience]):
    """An audience: a set of users who may see the same entries."""

    groups = serializers.SerializerMethodField(help_text="Names, sorted.")

    class Meta:
        model = Audience
        fields = ["slug", "name", "everyone", "groups"]

    def get_groups(self, audience: Audience) -> list[str]:
        return group_names(audience.groups.all())


class AudienceChangesSerializer(rest.StrictModelSerializer):
    """Changes to an audience; omitted fields stay as they are."""

    groups = rest.StrictListField(
        child=rest.StrictCharField(max_length=150),
        required=False,
        max_length=1000,
        help_text="Names of groups whose members belong to it.",
    )

    class Meta:
        model = Audience
        fields = ["name", "everyone", "groups"]


class NewAudienceSerializer(AudienceChangesSerializer):
    """A new audience."""

    slug = rest.StrictCharField(max_length=SLUG_LIMIT)

    class Meta(AudienceChangesSerializer.Meta):
        fields = [*AudienceChangesSerializer.Meta.fields, "slug"]


@extend_schema_view(
    list=extend_schema(summary="List audiences"),
    retrieve=extend_schema(summary="Read an audience"),
)
class AudienceViewSet(RetrieveModelMixin, rest.RowViewSet[Audience]):
    """The audiences that the caller belongs to; all of them for an admin."""

    permission_classes = [AgentReadsAdminWrites]
    serializer_class = AudienceSerializer
    ordering = ("slug",)
    filter_backends = []
    lookup_field = "slug"
    lookup_value_converter = "slug"
    not_found = AudienceNotFoundError

    def get_queryset(self) -> AudienceQuerySet:
        audiences = Audience.objects.prefetch_related("groups")
        return audiences.listed_for(self.request.user)

    @extend_schema(
        summary="Create an audience",
        request=NewAudienceSerializer,
        responses={201: AudienceSerializer, 409: "The slug is taken."},
    )
    def create(self, request: Request) -> Response:
        """Create an audience of everyone or of the members of groups."""
        made = create_audience(**self.validated(NewAudienceSerializer))
        return Response(AudienceSerializer(made).data, status=status.HTTP_201_CREATED)

    @extend_schema(summary="Change an audience", request=AudienceChangesSerializer)
    def partial_update(self, request: Request, slug: str) -> Response:
        """Change the given fields; who may see what changes immediately."""
        audience = self.get_object()
        changes = self.validated(AudienceChangesSerializer)
        changed = edit_audience(audience_id=audience.pk, **changes)
        return Response(AudienceSerializer(changed).data)
