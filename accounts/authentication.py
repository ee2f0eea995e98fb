"""Authentication by API token, password (throttled) and session; users' groups."""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser, Group, User
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import CharField, Model, OuterRef, Q, Value
from django.db.models.functions import Cast, Concat
from django.http import HttpRequest
from knox.auth import TokenAuthentication
from knox.crypto import hash_token
from rest_framework.authentication import get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from accounts.exceptions import ThrottledError
from accounts.models import ApiToken, KnowledgeRole
from accounts.prepared import WrittenQuery, field_names, instance
from accounts.throttles import login_wait

_USER = field_names(User)
_KEPT = "_group_names"
_KEPT_ROLES = "_knowledge_roles"

KnowledgeRoles = frozenset[tuple[int, str]]
"""Pairs of a knowledge base's id and the role in it."""


def remember_groups(
    user: User, names: Iterable[str], knowledge_roles: Iterable[str] = ()
) -> None:
    """Cache the names of a user's groups, and their roles given as `base:role`."""
    setattr(user, _KEPT, frozenset(names))
    setattr(user, _KEPT_ROLES, _parsed(knowledge_roles))


def rights_of(user: User) -> tuple[frozenset[str], KnowledgeRoles]:
    """Return the names of a user's groups and their roles in single knowledge bases.

    Takes one query, unless `remember_groups` cached them.
    """
    if hasattr(user, _KEPT):
        return getattr(user, _KEPT), getattr(user, _KEPT_ROLES)
    row = User.objects.filter(pk=user.pk).values_list(*_rights("pk")).first()
    names, roles = row or ((), ())
    return frozenset(names), _parsed(roles)


def _rights(key: str) -> tuple[ArraySubquery, ArraySubquery]:
    """Return the arguments of `remember_groups` as expressions; `key` is the user."""
    names = Group.objects.filter(user=OuterRef(key)).order_by().values("name")
    groups = User.groups.through.objects.filter(user=OuterRef(OuterRef(key)))
    own = Q(user=OuterRef(key)) | Q(group__in=groups.values("group"))
    said = Concat(Cast("knowledge_base_id", CharField()), Value(":"), "role")
    roles = KnowledgeRole.objects.filter(own).order_by().values(said=said)
    return ArraySubquery(names), ArraySubquery(roles)


def _parsed(roles: Iterable[str]) -> KnowledgeRoles:
    parts = (each.partition(":") for each in roles)
    return frozenset((int(base), role) for base, _, role in parts)


def find_user(**named: object) -> User | None:
    """Return a user with their groups and roles cached, in one query; None if none."""
    names, roles = _rights("pk")
    found = User.objects.annotate(group_names=names, role_names=roles)
    user = found.filter(**named).first()
    if user is not None:
        remember_groups(user, user.group_names, user.role_names)
    return user


def _user_of(row: Sequence[Any]) -> User:
    """Return a user from the columns `_USER`, followed by those of `_rights`."""
    user = instance(User, row[:-2])
    remember_groups(user, row[-2], row[-1])
    return user


@lru_cache(maxsize=1024)
def _user_of_session(key: int) -> WrittenQuery:
    """Return the query for a session's user; building it is slower than running it."""
    found = User.objects.filter(pk=key).order_by()
    return WrittenQuery.of(found.values_list(*_USER, *_rights("pk")))


# Tokens, in `Authorization: Bearer ...` or `Authorization: Token ...`.


_TOKEN = field_names(ApiToken)
CHALLENGE = "Bearer, Token"
"""The schemes that a 401 names; both take the same token."""
HOW_TO_SIGN_IN = (
    "Send the header `Authorization: Bearer nsc_...` with a token of an active user, "
    "created on the page /tokens, with POST /api/v1/tokens or with `manage.py create_token`."
)


class TokenExpiredError(AuthenticationFailed):
    """The token has expired; only a caller who sends its whole secret gets this error.

    A revoked token is deleted, so it counts as unknown.
    """

    default_code = "token_expired"


class ApiTokenAuthentication(TokenAuthentication):  # type: ignore[misc]  # knox ships no types
    """Knox's scheme with one query per request, which reads the user's groups too.

    Knox itself looks up all tokens that share a prefix, then deletes the user's expired
    ones, and fails on bytes that are not UTF-8.
    """

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Accept RFC 6750's `Bearer` as well as knox's `Token`."""
        words = get_authorization_header(request).split()
        if not words or words[0].lower() not in {b"bearer", b"token"}:
            return None
        if len(words) != 2:
            raise AuthenticationFailed("The header has no token, or several words.")
        return self.authenticate_credentials(words[1])

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE

    def authenticate_credentials(self, token: bytes) -> tuple[User, ApiToken]:
        digest = hash_token(token.decode("utf-8", "replace"))
        row = _live_token(digest).first()
        if row is None:
            if ApiToken.objects.filter(digest=digest).exists():
                raise TokenExpiredError("This token has expired; create a new one.")
            raise AuthenticationFailed("This token is not known, or it was revoked.")
        found = instance(ApiToken, row[: len(_TOKEN)])
        user = found.user = _user_of(row[len(_TOKEN) :])
        if not user.is_active:
            raise AuthenticationFailed("The user of this token is not active.")
        return user, found


@lru_cache(maxsize=1024)
def _live_token(digest: str) -> WrittenQuery:
    return WrittenQuery.of(
        ApiToken.objects.live()
        .filter(digest=digest)
        .order_by()
        .values_list(*_TOKEN, *(f"user__{name}" for name in _USER), *_rights("user_id"))
    )


# Sessions, and passwords with one limit on guesses for REST, pages and admin alike.


class AccountBackend(ModelBackend):
    """Loads sessions and permissions of active users; it does not sign anybody in.

    A role in one knowledge base grants the pages that show rows of knowledge bases; the
    queries of these pages limit the rows.
    """

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: object,
    ) -> User | None:
        return None

    def get_user(self, user_id: int) -> User | None:
        row = _user_of_session(user_id).first()
        if row is None:
            return None
        user = _user_of(row)
        return user if self.user_can_authenticate(user) else None

    def get_group_permissions(
        self, user_obj: User | AnonymousUser, obj: Model | None = None
    ) -> set[str]:
        # Imported here, since `accounts.roles` imports this module.
        from accounts.permissions import permissions_in_bases  # noqa: PLC0415

        found: set[str] = super().get_group_permissions(user_obj, obj)
        if obj is not None or not isinstance(user_obj, User) or not user_obj.is_active:
            return found
        return found | permissions_in_bases(user_obj)


class ThrottledModelBackend(AccountBackend):
    """Checks passwords, with a limit on attempts, whether right or wrong."""

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
