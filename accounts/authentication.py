"""Who is asking: a token in `Authorization: Token ...`."""

from django.contrib.auth.models import User
from knox.auth import TokenAuthentication
from knox.crypto import hash_token
from rest_framework.exceptions import AuthenticationFailed

from accounts.models import ApiToken


class ApiTokenAuthentication(TokenAuthentication):  # type: ignore[misc]  # knox ships no types
    """Knox's scheme with one query a request.

    Knox looks up all tokens that share a prefix, then every token of the user to
    delete the expired ones, and fails on bytes that are not UTF-8.
    """

    def authenticate_credentials(self, token: bytes) -> tuple[User, ApiToken]:
        """Return the active owner of a live token.

        Raises:
            AuthenticationFailed: No such token, expired, or the user is inactive.
        """
        row = (
            ApiToken.objects.live()
            .select_related("user")
            .filter(digest=hash_token(token.decode("utf-8", "replace")))
            .first()
        )
        if row is None:
            msg = "This token is not known, or it was revoked, or it expired."
            raise AuthenticationFailed(msg)
        if not row.user.is_active:
            msg = "The user of this token is not active."
            raise AuthenticationFailed(msg)
        return row.user, row
