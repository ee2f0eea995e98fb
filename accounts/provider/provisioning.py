"""Provisioning: another system, such as a directory, manages accounts over REST.

It covers what SCIM clients need, as plain REST, with a token that has a separate right.
Superusers can't be read or changed.
"""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.db import IntegrityError, transaction
from django.db.models import Model, Prefetch, QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import rest
from accounts.exceptions import ConflictError, NescioError
from accounts.models import ApiToken, KnowledgeRole, ProviderAccount
from accounts.people import group_names
from accounts.roles import IsAdmin
from accounts.services import end_access, set_groups, set_knowledge_roles, update_staff

_TAKEN = "Another account has the name or the subject."


class NoProviderError(NescioError):
    code = "no_identity_provider"


class MayProvision(IsAdmin):
    def has_permission(self, request: Request, view: APIView) -> bool:
        allowed = super().has_permission(request, view)
        self.message = (
            "This needs a token of a user with the role admin, created with "
            "manage.py create_token --manages-users."
        )
        token = request.auth
        return allowed and isinstance(token, ApiToken) and token.may_manage_users


@transaction.atomic
def write_account(user: User, changes: Mapping[str, Any]) -> User:
    """Create or change an account; one set inactive loses its sessions and tokens.

    Args:
        user: A saved user, or a new one with a valid name.
        changes: Fields of the user; `groups` and `knowledge_roles`, which replace the
            current ones; and `subject` at the configured identity provider.

    Raises:
        ConflictError: Another account has the name or the subject.
        NoProviderError: There is a subject but no identity provider.
    """
    changes = {**changes}
    groups, subject = changes.pop("groups", None), changes.pop("subject", None)
    roles = changes.pop("knowledge_roles", None)
    is_new = user._state.adding
    if is_new:
        user.set_unusable_password()
        if User.objects.filter(username__iexact=user.username).exists():
            raise ConflictError(f"There is an account {user.username!r} already.")
    for name, value in changes.items():
        setattr(user, name, value)
    try:
        with transaction.atomic():
            # Concurrent changes to other fields, such as closing the account, are kept.
            user.save(update_fields=None if is_new else [*changes])
            if subject is not None:
                _connect(user, subject)
    except IntegrityError as error:
        raise ConflictError(
            f"Another account has the name {user.username!r} or subject {subject!r}."
        ) from error
    if groups is not None:
        set_groups(user, groups)
    if roles is not None:
        set_knowledge_roles(
            user, {each["knowledge_base"].pk: each["role"] for each in roles}
        )
    if "is_active" in changes:  # only active users may have access to the admin
        update_staff(user)
    if not user.is_active:
        end_access(user)
    return user


def _connect(user: User, subject: str) -> None:
    if not settings.OIDC_ISSUER:
        raise NoProviderError(
            "A subject is somebody's id at an identity provider, and none is set: "
            "NESCIO_OIDC_ISSUER."
        )
    values = {"issuer": settings.OIDC_ISSUER, "subject": subject}
    ProviderAccount.objects.update_or_create(user=user, defaults=values)


class KnowledgeRoleSerializer(rest.ShownSerializer[KnowledgeRole]):
    """An account's role in a single knowledge base."""

    knowledge_base = serializers.SlugRelatedField[Model](
        slug_field="slug", read_only=True
    )

    class Meta:
        model = KnowledgeRole
        fields = ["knowledge_base", "role"]


class UserSerializer(rest.ShownSerializer[User]):
    """An account."""

    email = serializers.CharField(help_text="Empty: not known.")
    groups = serializers.SerializerMethodField(help_text="Names, sorted.")
    knowledge_roles = KnowledgeRoleSerializer(many=True, read_only=True)
    subject = rest.optional_text(
        "provider_account.subject", help_text="Their id at the identity provider."
    )

    class Meta:
        model = User
        fields = [
            "username", "first_name", "last_name", "email", "is_active", "groups",
            "knowledge_roles", "subject", "last_login",
        ]  # fmt: skip

    def get_groups(self, user: User) -> list[str]:
        return group_names(user.groups.all())


_BASES: Any = KnowledgeRole._meta.get_field("knowledge_base").related_model


class NewKnowledgeRoleSerializer(rest.StrictSerializer):
    """The role that an account is to have in a single knowledge base."""

    knowledge_base = rest.StrictSlugField(
        slug_field="slug", queryset=_BASES.objects.all()
    )
    role = serializers.ChoiceField(
        choices=[(kind, kind) for kind in KnowledgeRole.Kind]
    )


class UserChangesSerializer(rest.StrictModelSerializer):
    """Changes to an account; fields that are left out stay as they are."""

    groups = rest.StrictSlugListField(
        queryset=Group.objects.all(),
        slug_field="name",
        required=False,
        max_length=1000,
        help_text="Names of all groups to have from now on, roles included.",
    )
    knowledge_roles = rest.StrictListField(
        child=NewKnowledgeRoleSerializer(),
        required=False,
        max_length=1000,
        help_text="All roles in single knowledge bases to have from now on, besides "
        "those of their groups.",
    )
    subject = rest.StrictCharField(
        max_length=255, required=False, help_text="The claim sub of their sign-ins."
    )

    class Meta:
        model = User
        fields = [
            "first_name", "last_name", "email", "is_active", "groups", "knowledge_roles",
            "subject",
        ]  # fmt: skip

    def validate_knowledge_roles(
        self, value: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        named = [each["knowledge_base"].slug for each in value]
        for slug in named:
            if named.count(slug) > 1:
                raise serializers.ValidationError(
                    f"{slug!r} is named twice; give one role in it, the higher one."
                )
        return value


class NewUserSerializer(UserChangesSerializer):
    """An account to create; it has no password."""

    username = rest.StrictCharField(
        max_length=150, validators=[UnicodeUsernameValidator()]
    )

    class Meta(UserChangesSerializer.Meta):
        fields = [*UserChangesSerializer.Meta.fields, "username"]


@extend_schema_view(
    list=extend_schema(summary="List accounts"),
    retrieve=extend_schema(summary="Read an account"),
)
class UserViewSet(ListModelMixin, RetrieveModelMixin, rest.ResourceViewSet[User]):
    """Accounts, newest first, without superusers: for a token that manages users."""

    permission_classes = [MayProvision]
    serializer_class = UserSerializer
    ordering = ("-date_joined", "-pk")
    filter_backends = []
    lookup_field = "username"
    lookup_value_converter = "str"

    def get_queryset(self) -> QuerySet[User]:
        users = User.objects.filter(is_superuser=False)
        roles = KnowledgeRole.objects.select_related("knowledge_base")
        return users.select_related("provider_account").prefetch_related(
            "groups", Prefetch("knowledge_roles", roles)
        )

    def get_object(self) -> User:
        self.kwargs["username"] = self.kwargs["username"].replace("\0", "�")
        return super().get_object()

    @extend_schema(
        summary="Create an account",
        request=NewUserSerializer,
        responses={201: UserSerializer, 409: _TAKEN},
    )
    def create(self, request: Request) -> Response:
        """Create an account without a password."""
        given = self.validated(NewUserSerializer)
        user = User(username=User.normalize_username(given.pop("username")))
        write_account(user, given)
        return Response(self._shown(user), status=status.HTTP_201_CREATED)

    @extend_schema(
        summary="Change or close an account",
        request=UserChangesSerializer,
        responses={200: UserSerializer, 409: _TAKEN},
    )
    def partial_update(self, request: Request, username: str) -> Response:
        """Change the given fields; setting it inactive ends its sessions and tokens."""
        user = write_account(self.get_object(), self.validated(UserChangesSerializer))
        return Response(self._shown(user))

    def _shown(self, user: User) -> Any:
        return UserSerializer(self.get_queryset().get(pk=user.pk)).data
