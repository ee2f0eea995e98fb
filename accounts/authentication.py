"""Who is asking: a token in `Authorization: Token ...`."""

from django.contrib.auth.models import Group, User
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef
from knox.auth import TokenAuthentication
from knox.crypto import hash_token
from rest_framework.exceptions import AuthenticationFailed

from accounts.groups import remember_groups
from accounts.models import ApiToken


class ApiTokenAuthentication(TokenAuthentication):  # type: ignore[misc]  # knox ships no types
    """Knox's scheme with one query a request, which reads the user's groups too.

    Knox looks up all tokens that share a prefix, then every token of the user to
    delete the expired ones, and fails on bytes that are not UTF-8.
    """

    def authenticate_credentials(self, token: bytes) -> tuple[User, ApiToken]:
        """Return the active owner of a live token.

        Raises:
            AuthenticationFailed: No such token, expired, or the user is inactive.
        """
        groups = Group.objects.filter(user=OuterRef("user_id")).order_by()
        row = (
            ApiToken.objects.live()
            .select_related("user")
            .annotate(group_names=ArraySubquery(groups.values("name")))
            .filter(digest=hash_token(token.decode("utf-8", "replace")))
            .first()
        )
        if row is None:
            msg = "This token is not known, or it was revoked, or it expired."
            raise AuthenticationFailed(msg)
        if not row.user.is_active:
            msg = "The user of this token is not active."
            raise AuthenticationFailed(msg)
        remember_groups(row.user, row.group_names)
        return row.user, row
