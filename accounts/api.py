from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import ValidationError
from rest_framework.permissions import AllowAny, BasePermission, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import rest, services
from accounts.delegation import HEADER, acting_service
from accounts.models import ApiToken, AuditEntry
from accounts.roles import IsAdmin, Role, has_role


class TokenSerializer(rest.ShownSerializer[ApiToken]):
    """A token without its secret."""

    user = serializers.CharField(source="user.username", read_only=True)
    created_at = serializers.DateTimeField(source="created", read_only=True)
    expires_at = serializers.DateTimeField(
        source="expiry", read_only=True, allow_null=True
    )

    class Meta:
        model = ApiToken
        fields = [
            "id", "name", "user", "may_act_for_others", "may_manage_users",
            "created_at", "expires_at",
        ]  # fmt: skip


class IssuedTokenSerializer(TokenSerializer):
    """A new token with its secret, which is shown only once."""

    token = serializers.CharField(
        read_only=True,
        help_text="Send it as `Authorization: Bearer ...` (or `Token ...`); it can't be "
        "shown again.",
    )

    class Meta(TokenSerializer.Meta):
        fields = [*TokenSerializer.Meta.fields, "token"]


class CredentialsSerializer(serializers.Serializer[None]):
    """The credentials of a user who requests a token, and its name and lifetime."""

    username = serializers.CharField(max_length=150)
    password = serializers.CharField(
        max_length=1000, trim_whitespace=False, style={"input_type": "password"}
    )
    name = serializers.CharField(
        max_length=100, default="", allow_blank=True, help_text="What it is for."
    )
    expires_in_days = serializers.IntegerField(
        min_value=1,
        max_value=services.MAX_TOKEN_DAYS,
        allow_null=True,
        required=False,
        help_text="null never expires; left out, NESCIO_TOKEN_DAYS applies.",
    )


def _lifetime(given: Mapping[str, Any]) -> services.Lifetime:
    if "expires_in_days" not in given:
        return "default"
    days = given["expires_in_days"]
    return None if days is None else timedelta(days=days)


class ActsForItself(IsAuthenticated):
    """Denies a service that acts for a user access to that user's own account."""

    message = f"This can't be done on behalf of others; leave {HEADER} out."

    def has_permission(self, request: Request, view: APIView) -> bool:
        allowed = super().has_permission(request, view)
        return allowed and not acting_service(request.user)


class TokenViewSet(rest.RowViewSet[ApiToken]):
    """List your own tokens, newest first; an admin sees everybody's.

    The secrets are not stored and can't be shown.
    """

    serializer_class = TokenSerializer
    permission_classes = [ActsForItself]
    filter_backends = []
    ordering = ("-created", "-pk")
    lookup_url_kwarg = "token_id"
    lookup_value_converter = "uuid"

    def get_permissions(self) -> list[BasePermission]:
        # An unsupported method gets a 405 regardless of the user.
        if self.action in {"create", None}:
            return [AllowAny()]
        return super().get_permissions()  # type: ignore[return-value]  # the stubs name a protocol

    def get_authenticators(self) -> list[BaseAuthentication]:
        """Ignore credentials on sign-in, so that an old token does not cause a 401."""
        # The schema generator calls this without a request.
        if getattr(self.request, "method", None) == "POST":
            return []
        return super().get_authenticators()

    def get_queryset(self) -> QuerySet[ApiToken]:
        tokens: QuerySet[ApiToken] = ApiToken.objects.select_related("user")
        if has_role(self.request.user, Role.ADMIN):
            return tokens
        return tokens.filter(user_id=self.request.user.pk)

    @extend_schema(
        auth=[], request=CredentialsSerializer, responses={201: IssuedTokenSerializer}
    )
    def create(self, request: Request) -> Response:
        """Exchange a user name and password for a token, which is shown only once."""
        given = self.validated(CredentialsSerializer)
        issued = services.sign_in_for_token(
            request._request,
            username=given["username"],
            password=given["password"],
            name=given["name"],
            expires_in=_lifetime(given),
        )
        issued.row.token = issued.secret
        return Response(
            IssuedTokenSerializer(issued.row).data, status=status.HTTP_201_CREATED
        )

    @extend_schema(operation_id="tokens_revoke")
    def destroy(self, request: Request, token_id: UUID) -> Response:
        """Revoke your own token at once; an admin may revoke any but a superuser's."""
        services.revoke_token(token_id=token_id, by=request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)


class AuditEntrySerializer(rest.ShownSerializer[AuditEntry]):
    """One change to what somebody may see or do."""

    changes = serializers.DictField(
        child=serializers.ListField(), help_text="[before, after] by field; no secrets."
    )

    class Meta:
        model = AuditEntry
        fields = ["id", "at", "actor", "reader", "kind", "action", "subject", "changes"]


class AuditFilter(rest.StrictFilterSet):
    kind = rest.SlugFilter(method="filter_kind")
    actor = rest.SlugFilter(
        method="filter_actor", label="The user name; also a former one."
    )
    since = rest.MomentFilter("at", "gte")
    until = rest.MomentFilter("at", "lt")

    def filter_kind(
        self, rows: QuerySet[AuditEntry], _name: str, kind: str
    ) -> QuerySet[AuditEntry]:
        if not AuditEntry.objects.filter(kind=kind).exists():
            named = AuditEntry.objects.order_by("kind").values_list("kind", flat=True)
            listed = ", ".join(named.distinct()) or "none yet"
            said = f"There is no record of kind {kind[:80]!a}; there are: {listed}."
            raise ValidationError({"kind": [said]})
        return rows.filter(kind=kind)

    def filter_actor(
        self, rows: QuerySet[AuditEntry], _name: str, actor: str
    ) -> QuerySet[AuditEntry]:
        # The audit outlives its users; admins may know the names of all of them.
        found = rows.filter(actor=actor)
        is_known = User.objects.filter(username=actor).exists()
        if not is_known and not AuditEntry.objects.filter(actor=actor).exists():
            raise ValidationError({"actor": [f"There is no user {actor[:80]!a}."]})
        return found


class AuditViewSet(rest.RowViewSet[AuditEntry]):
    """Changes to access: users, groups, audiences, policies and tokens; for admins.

    Newest first.
    """

    queryset = AuditEntry.objects.all()
    serializer_class = AuditEntrySerializer
    permission_classes = [IsAdmin]
    filterset_class = AuditFilter
    ordering = ("-pk",)
