"""Writes: the tokens of users."""

import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from django.contrib.auth import authenticate
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from knox.settings import knox_settings

from accounts.acting import acting_for
from accounts.exceptions import InvalidCredentialsError, TokenNotFoundError
from accounts.models import ApiToken
from accounts.roles import Role, has_role

MAX_TOKEN_DAYS = 3650
# None never expires; "default" is as long as NESCIO_TOKEN_DAYS says.
Lifetime = timedelta | None | Literal["default"]


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A new token: its row, and the secret that is shown this once and never stored."""

    row: ApiToken
    secret: str = field(repr=False)


def create_token(
    *,
    user: User,
    name: str = "",
    expires_in: Lifetime = "default",
    may_act_for_others: bool = False,
) -> IssuedToken:
    """Make a token for `user`; it works until it expires, is revoked or the user is inactive."""
    expiry = knox_settings.TOKEN_TTL if expires_in == "default" else expires_in
    row, secret = ApiToken.objects.create(
        user=user, expiry=expiry, name=name, may_act_for_others=may_act_for_others
    )
    return IssuedToken(row=row, secret=secret)


def sign_in_for_token(
    request: HttpRequest,
    *,
    username: str,
    password: str,
    name: str = "",
    expires_in: Lifetime = "default",
) -> IssuedToken:
    user = authenticate(request, username=username, password=password)
    if not isinstance(user, User):
        raise InvalidCredentialsError(
            f"No active user {username!r} has this password. "
            "Check both; an administrator can set a new password."
        )
    with acting_for(user):
        return create_token(user=user, name=name, expires_in=expires_in)


def revocable_tokens(by: AbstractBaseUser | AnonymousUser) -> QuerySet[ApiToken]:
    """Return whose tokens `by` may end: a superuser's only a superuser and their owner."""
    tokens: QuerySet[ApiToken] = ApiToken.objects.all()
    if not has_role(by, Role.ADMIN):
        return tokens.filter(user_id=by.pk)
    if isinstance(by, User) and by.is_superuser:
        return tokens
    return tokens.filter(Q(user__is_superuser=False) | Q(user_id=by.pk))


def revoke_token(*, token_id: uuid.UUID, by: AbstractBaseUser | AnonymousUser) -> None:
    deleted, _ = revocable_tokens(by).filter(pk=token_id).delete()
    if not deleted:
        raise TokenNotFoundError(f"There is no token {token_id} that you may revoke.")
