"""Writes: users with a role, and their tokens."""

import uuid
from dataclasses import dataclass, field
from datetime import timedelta

from django.contrib.auth import authenticate
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group, User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest

from accounts.exceptions import (
    InvalidAccountError,
    InvalidCredentialsError,
    TokenNotFoundError,
)
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


def create_user(
    *, username: str, role: Role, password: str | None = None, email: str = ""
) -> User:
    """Make a user with a role; without a password they can only use tokens."""
    user = User(username=username, email=email)
    try:
        if password is not None:
            validate_password(password, user)
        user.set_password(password)
        user.full_clean()
    except ValidationError as error:
        raise InvalidAccountError(
            f"User {username!r} can't be made: {' '.join(error.messages)}"
        ) from error
    with transaction.atomic():
        user.save()
        set_role(user, role=role)
    return user


def set_role(user: User, *, role: Role) -> None:
    """Give `user` this role in place of any other; all but agent may open the admin."""
    names = [each.value for each in Role]
    with transaction.atomic():
        user.groups.remove(*user.groups.filter(name__in=names))
        user.groups.add(Group.objects.get(name=role.value))
        user.is_staff = user.is_superuser or role != Role.AGENT
        user.save(update_fields=["is_staff"])
