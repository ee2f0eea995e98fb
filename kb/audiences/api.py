from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.pagination import NewestFirstPagination
from accounts.roles import Role, has_role
from accounts.strict_fields import StrictBooleanField, StrictCharField, StrictSerializer
from kb.audiences import services as audiences
from kb.audiences.models import Audience
from kb.audiences.services import create_audience, edit_audience
from kb.exceptions import AudienceNotFoundError
from kb.interface.api import AgentReadsAdminWrites


class BySlugPagination(NewestFirstPagination):
    """Pages by slug, for rows that keep no time of creation."""

    ordering = ("slug",)


class AudienceSerializer(serializers.ModelSerializer[Audience]):
    """Who may see what."""

    groups = serializers.SlugRelatedField[Any](
        slug_field="name", many=True, read_only=True
    )

    class Meta:
        model = Audience
        fields = ["slug", "name", "everyone", "groups"]
        read_only_fields = fields


class AudienceChangesSerializer(StrictSerializer):
    """What to change; what is left out stays."""

    name = StrictCharField(max_length=audiences.NAME_LIMIT, required=False)
    everyone = StrictBooleanField(
        required=False, help_text="Every signed-in user belongs to it."
    )
    groups = serializers.ListField(
        child=StrictCharField(max_length=150),
        required=False,
        max_length=1000,
        help_text="Names of groups whose members belong to it.",
    )


class NewAudienceSerializer(AudienceChangesSerializer):
    """An audience to be made."""

    slug = StrictCharField(max_length=audiences.SLUG_LIMIT)
    name = StrictCharField(max_length=audiences.NAME_LIMIT)


def _visible(request: Request) -> QuerySet[Audience]:
    """The caller's own audiences; every one for who manages them."""
    if has_role(request.user, Role.ADMIN):
        return Audience.objects.all()
    return Audience.objects.visible_to(request.user)


def _find(request: Request, slug: str) -> Audience:
    audience = _visible(request).filter(slug=slug).first()
    if audience is None:
        raise AudienceNotFoundError(f"There is no audience {slug!r} that you may see.")
    return audience


@extend_schema_view(
    get=extend_schema(operation_id="audiences_list", summary="List audiences")
)
class AudienceListView(ListAPIView[Audience]):
    """The audiences that the caller belongs to."""

    permission_classes = [AgentReadsAdminWrites]
    throttle_scope = "user"
    serializer_class = AudienceSerializer
    pagination_class = BySlugPagination
    filter_backends = []

    def get_queryset(self) -> QuerySet[Audience]:
        return _visible(self.request).prefetch_related("groups")

    @extend_schema(
        operation_id="audiences_create",
        summary="Make an audience",
        request=NewAudienceSerializer,
        responses={
            201: AudienceSerializer,
            409: OpenApiResponse(description="The slug is taken."),
        },
    )
    def post(self, request: Request) -> Response:
        """Make an audience of everyone or of the members of groups."""
        body = NewAudienceSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        audience = create_audience(**body.validated_data)
        return Response(
            AudienceSerializer(audience).data, status=status.HTTP_201_CREATED
        )


class AudienceView(GenericAPIView[Audience]):
    """One audience."""

    permission_classes = [AgentReadsAdminWrites]
    throttle_scope = "user"
    serializer_class = AudienceSerializer
    queryset = Audience.objects.none()

    @extend_schema(
        operation_id="audiences_read",
        summary="Read an audience",
        responses=AudienceSerializer,
    )
    def get(self, request: Request, slug: str) -> Response:
        """Return an audience."""
        return Response(AudienceSerializer(_find(request, slug)).data)

    @extend_schema(
        operation_id="audiences_change",
        summary="Change an audience",
        request=AudienceChangesSerializer,
        responses=AudienceSerializer,
    )
    def patch(self, request: Request, slug: str) -> Response:
        """Change what is given; who may see what changes with the answer."""
        audience = _find(request, slug)
        body = AudienceChangesSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        changed = edit_audience(audience_id=audience.pk, **body.validated_data)
        return Response(AudienceSerializer(changed).data)
