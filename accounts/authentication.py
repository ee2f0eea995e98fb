"""Who is asking: API tokens, passwords with a bound on guesses, sessions, and their groups."""

import math
from collections.abc import Iterable
from functools import lru_cache

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, User
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef
from django.http import HttpRequest
from knox.auth import TokenAuthentication
from knox.crypto import hash_token
from rest_framework.authentication import get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from accounts.exceptions import ThrottledError
from accounts.models import ApiToken
from accounts.prepared import WrittenQuery, field_names, instance
from accounts.throttles import login_wait

_KEPT = "_group_names"


def remember_groups(user: User, names: Iterable[str]) -> None:
    setattr(user, _KEPT, frozenset(names))


def remembered_groups(user: User) -> frozenset[str] | None:
    names: frozenset[str] | None = getattr(user, _KEPT, None)
    return names


def find_user(**named: object) -> User | None:
    """Return a user with their groups, by one query."""
    names = Group.objects.filter(user=OuterRef("pk")).order_by().values("name")
    found = User.objects.annotate(group_names=ArraySubquery(names))
    user = found.filter(**named).first()
    if user is not None:
        remember_groups(user, user.group_names)
    return user


# Who is asking: a token in `Authorization: Bearer ...` or `Authorization: Token ...`.


_TOKEN = field_names(ApiToken)
_USER = field_names(User)


class ApiTokenAuthentication(TokenAuthentication):  # type: ignore[misc]  # knox ships no types
    """Knox's scheme with one query a request, which reads the user's groups too.

    Knox looks up all tokens that share a prefix, then deletes the user's expired ones,
    and fails on bytes that are not UTF-8.
    """

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Take RFC 6750's `Bearer` beside knox's own word."""
        words = get_authorization_header(request).split()
        if len(words) == 2 and words[0].lower() == b"bearer":
            return self.authenticate_credentials(words[1])
        found: tuple[User, ApiToken] | None = super().authenticate(request)
        return found

    def authenticate_credentials(self, token: bytes) -> tuple[User, ApiToken]:
        row = _live_token(hash_token(token.decode("utf-8", "replace"))).first()
        if row is None:
            raise AuthenticationFailed(
                "This token is not known, or it was revoked, or it expired."
            )
        found = instance(ApiToken, row[: len(_TOKEN)])
        user = found.user = instance(User, row[len(_TOKEN) : -1])
        if not user.is_active:
            raise AuthenticationFailed("The user of this token is not active.")
        remember_groups(user, row[-1])
        return user, found


@lru_cache(maxsize=1024)
def _live_token(digest: str) -> WrittenQuery:
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


# Passwords, with a bound on guesses that holds for REST, pages and admin alike;
# sessions.


class AccountBackend(ModelBackend):
    """Sessions and permissions of active users; it lets nobody in."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: object,
    ) -> User | None:
        return None

    def get_user(self, user_id: int) -> User | None:
        user = find_user(pk=user_id)
        return user if user and self.user_can_authenticate(user) else None


class ThrottledModelBackend(AccountBackend):
    """Checks a password unless too many were tried, right or wrong."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: object,
    ) -> User | None:
        if request is not None and username is not None:
            wait = login_wait(request, username)
            if wait is not None:
                raise ThrottledError(
                    "Too many attempts to sign in with this name or from this address. "
                    f"Try again in {math.ceil(wait)} s.",
                    wait,
                )
            if "\0" in username:  # PostgreSQL can't compare it
                return None
        return ModelBackend.authenticate(self, request, username, password, **kwargs)
