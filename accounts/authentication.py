"""Who is asking: a token in `Authorization: Token ...`."""

from functools import lru_cache

from django.contrib.auth.models import Group, User
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef
from knox.auth import TokenAuthentication
from knox.crypto import hash_token
from rest_framework.exceptions import AuthenticationFailed

from accounts.groups import remember_groups
from accounts.models import ApiToken
from accounts.written_query import WrittenQuery, field_names, instance

_TOKEN = field_names(ApiToken)
_USER = field_names(User)


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
        row = _live_token(hash_token(token.decode("utf-8", "replace"))).first()
        if row is None:
            msg = "This token is not known, or it was revoked, or it expired."
            raise AuthenticationFailed(msg)
        found = instance(ApiToken, row[: len(_TOKEN)])
        user = found.user = instance(User, row[len(_TOKEN) : -1])
        if not user.is_active:
            msg = "The user of this token is not active."
            raise AuthenticationFailed(msg)
        remember_groups(user, row[-1])
        return user, found


@lru_cache(maxsize=1024)
def _live_token(digest: str) -> WrittenQuery:
    """Ask for a token, its user and the user's groups by name."""
    groups = Group.objects.filter(user=OuterRef("user_id")).order_by()
    return WrittenQuery.of(
        ApiToken.objects.live()
        .filter(digest=digest)
        .order_by()
        .values_list(
            *_TOKEN,
            *(f"user__{name}" for name in _USER),
            ArraySubquery(groups.values("name")),
        )
    )
