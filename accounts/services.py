"""Writes: the tokens of users."""

import uuid
from dataclasses import dataclass, field
from datetime import timedelta

from django.contrib.auth import authenticate
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.http import HttpRequest

from accounts.exceptions import InvalidCredentialsError, TokenNotFoundError
from accounts.models import ApiToken
from accounts.roles import Role, has_role


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A new token: its row, and the secret that is shown this once and never stored."""

    row: ApiToken
    secret: str = field(repr=False)


def create_token(
    *, user: User, name: str = "", expires_in: timedelta | None = None
) -> IssuedToken:
    """Make a token for `user`; it works until it expires, is revoked or the user is inactive."""
    row, secret = ApiToken.objects.create(user=user, expiry=expires_in, name=name)
    return IssuedToken(row=row, secret=secret)


def sign_in_for_token(
    request: HttpRequest,
    *,
    username: str,
    password: str,
    name: str = "",
    expires_in: timedelta | None = None,
) -> IssuedToken:
    user = authenticate(request, username=username, password=password)
    if not isinstance(user, User):
        raise InvalidCredentialsError(
            f"No active user {username!r} has this password. "
            "Check both; an administrator can set a new password."
        )
    return create_token(user=user, name=name, expires_in=expires_in)


def revoke_token(*, token_id: uuid.UUID, by: AbstractBaseUser | AnonymousUser) -> None:
    tokens = ApiToken.objects.filter(pk=token_id)
    if not has_role(by, Role.ADMIN):
        tokens = tokens.owned_by(by)
    deleted, _ = tokens.delete()
    if not deleted:
        raise TokenNotFoundError(f"There is no token {token_id} of yours.")
