"""Tags over REST: how knowledge is divided, and the experts of each part."""

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.core.validators import validate_slug
from django.db import IntegrityError, transaction
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.status import HTTP_200_OK, HTTP_201_CREATED

from accounts import rest
from accounts.roles import Role, holders
from kb.exceptions import InvalidKnowledgeError, TagExistsError
from kb.interface.api import AgentReadsCuratorWrites, UserField
from kb.tags.models import Tag
from kb.text.cleaning import clean_line

NAME_LIMIT = 100


@transaction.atomic
def create_tag(
    *, slug: str, name: str, facet: str, experts: Sequence[User] = ()
) -> Tag:
    cleaned = clean_line(name, field="name", limit=NAME_LIMIT)
    try:
        with transaction.atomic():
            tag = Tag.objects.create(slug=slug, name=cleaned, facet=facet)
    except IntegrityError as error:
        raise TagExistsError(
            f"There is already a tag {slug!r}; choose another slug."
        ) from error
    tag.experts.set(_experts(experts))
    return tag


@transaction.atomic
def edit_tag(
    tag: Tag, *, name: str | None = None, experts: Sequence[User] | None = None
) -> Tag:
    if name is not None:
        tag.name = clean_line(name, field="name", limit=NAME_LIMIT)
        tag.save(update_fields=["name"])
    if experts is not None:
        tag.experts.set(_experts(experts))
    return tag


def _experts(users: Sequence[User]) -> Sequence[User]:
    able = set(holders(Role.SME).filter(pk__in=[user.pk for user in users]))
    for user in users:
        if user not in able:
            raise InvalidKnowledgeError(
                "experts",
                f"{user.get_username()} may not review; give them the role sme first.",
            )
    return users


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


class TagChangesSerializer(rest.StrictModelSerializer):
    """Changes to a tag; omitted fields stay as they are."""

    experts = rest.StrictSlugListField(
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
    """A new tag."""

    slug = rest.StrictCharField(max_length=50, validators=[validate_slug])

    class Meta(TagChangesSerializer.Meta):
        fields = [*TagChangesSerializer.Meta.fields, "slug", "facet"]


class _AgentReadsCuratorOfAllWrites(AgentReadsCuratorWrites):
    """Permission for tags, which all knowledge bases share."""

    somewhere = False


class TagViewSet(rest.RowViewSet[Tag]):
    """All tags by facet and slug; not paginated, as there are dozens, not thousands."""

    permission_classes = [_AgentReadsCuratorOfAllWrites]
    serializer_class = TagSerializer
    pagination_class = None
    filter_backends = []
    lookup_field = "slug"
    lookup_value_converter = "slug"
    queryset = Tag.objects.prefetch_related("experts")

    @extend_schema(
        request=NewTagSerializer,
        responses={201: TagSerializer, 409: "The slug is taken."},
    )
    def create(self, request: Request) -> Response:
        """Create a tag."""
        made = create_tag(**self.validated(NewTagSerializer))
        return self._shown(made, HTTP_201_CREATED)

    @extend_schema(request=TagChangesSerializer)
    def partial_update(self, request: Request, slug: str) -> Response:
        """Rename a tag, or set its experts."""
        changes = self.validated(TagChangesSerializer)
        return self._shown(edit_tag(self.get_object(), **changes))

    def _shown(self, tag: Tag, status: int = HTTP_200_OK) -> Response:
        return Response(TagSerializer(self.get_queryset().get(pk=tag.pk)).data, status)
