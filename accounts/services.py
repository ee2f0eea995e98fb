"""Writes: the tokens, groups and sessions of users."""

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from django.conf import settings
from django.contrib.auth import SESSION_KEY, authenticate
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from knox.settings import knox_settings

from accounts.acting import acting_for
from accounts.exceptions import (
    InvalidCredentialsError,
    LocalSignInOffError,
    TokenNotFoundError,
)
from accounts.models import ApiToken, KnowledgeRole, Preferences
from accounts.people import AnyUser
from accounts.roles import Role, has_role, has_role_somewhere, holders

Alert = Preferences.Alert
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
    may_manage_users: bool = False,
) -> IssuedToken:
    """Make a token for `user`; it works until it expires, is revoked or the user is inactive."""
    expiry = knox_settings.TOKEN_TTL if expires_in == "default" else expires_in
    row, secret = ApiToken.objects.create(
        user=user,
        expiry=expiry,
        name=name,
        may_act_for_others=may_act_for_others,
        may_manage_users=may_manage_users,
    )
    return IssuedToken(row=row, secret=secret)


def refuse_local_sign_in() -> None:
    """Raise `LocalSignInOffError` where passwords count for nothing."""
    if not settings.LOCAL_SIGN_IN:
        raise LocalSignInOffError(
            f"Passwords are switched off here. Sign in with {settings.OIDC_NAME}; tokens "
            "for programs are made on the page API tokens."
        )


def sign_in_for_token(
    request: HttpRequest,
    *,
    username: str,
    password: str,
    name: str = "",
    expires_in: Lifetime = "default",
) -> IssuedToken:
    refuse_local_sign_in()
    user = authenticate(request, username=username, password=password)
    if not isinstance(user, User):
        raise InvalidCredentialsError(
            f"No active user {username!r} has this password. "
            "Check both; an administrator can set a new password."
        )
    with acting_for(user):
        return create_token(user=user, name=name, expires_in=expires_in)


def revocable_tokens(by: AnyUser) -> QuerySet[ApiToken]:
    """Return whose tokens `by` may end: a superuser's only a superuser and their owner."""
    tokens: QuerySet[ApiToken] = ApiToken.objects.all()
    if not has_role(by, Role.ADMIN):
        return tokens.filter(user_id=by.pk)
    if isinstance(by, User) and by.is_superuser:
        return tokens
    return tokens.filter(Q(user__is_superuser=False) | Q(user_id=by.pk))


def revoke_token(*, token_id: uuid.UUID, by: AnyUser) -> None:
    deleted, _ = revocable_tokens(by).filter(pk=token_id).delete()
    if not deleted:
        raise TokenNotFoundError(f"There is no token {token_id} that you may revoke.")


def set_groups(user: User, groups: Iterable[Group]) -> None:
    """Make `groups` all that the user has; from the role sme on the admin is open."""
    user.groups.set(groups)
    update_staff(user)


def update_staff(user: User) -> None:
    """Open the admin to who may use it, after a change of role."""
    is_staff = has_role_somewhere(user, Role.SME)
    if user.is_staff != is_staff:
        user.is_staff = is_staff
        user.save(update_fields=["is_staff"])


@contextmanager
def keeping_staff(chosen: Callable[[], QuerySet[User]]) -> Iterator[None]:
    """Open the admin, or close it, for those whose roles are changed within the block.

    Args:
        chosen: Whom it may concern; read before and after.
    """
    before = set(chosen().values_list("pk", flat=True))
    yield
    users = User.objects.filter(
        pk__in=before | set(chosen().values_list("pk", flat=True))
    )
    able = holders(Role.SME, somewhere=True).values("pk")
    users.filter(is_staff=False, pk__in=able).update(is_staff=True)
    users.filter(is_staff=True).exclude(pk__in=able).update(is_staff=False)


def holding_roles(rows: QuerySet[KnowledgeRole]) -> QuerySet[User]:
    """Return the users who have these roles, by themselves or by a group."""
    groups = rows.filter(group__isnull=False).values("group")
    members = User.groups.through.objects.filter(group__in=groups).values("user_id")
    own = rows.filter(user__isnull=False).values("user")
    return User.objects.filter(Q(pk__in=own) | Q(pk__in=members))


@transaction.atomic
def set_knowledge_roles(user: User, roles: Mapping[int, str]) -> None:
    """Make these all the roles that the user themself has in single knowledge bases.

    Args:
        roles: By the knowledge base's id.
    """
    rows = KnowledgeRole.objects.filter(user=user)
    rows.exclude(knowledge_base__in=roles).delete()
    for base, role in roles.items():
        KnowledgeRole.objects.update_or_create(
            user=user, knowledge_base_id=base, defaults={"role": role}
        )
    update_staff(user)


def preferences_of(user: User) -> Preferences:
    return getattr(user, "preferences", None) or Preferences(user=user)


ALERT_ROLES: Mapping[Alert, Role] = {
    Alert.FAILURES: Role.CURATOR,
    Alert.DRIFT: Role.ADMIN,
    Alert.ESCALATIONS: Role.SME,
    Alert.GAPS: Role.SME,
}
"""The role, if only in one knowledge base, whose holders may choose an alert."""
_ALERTS_OF_ADMINS = (Alert.FAILURES, Alert.DRIFT)


def alerts_open_to(user: User) -> tuple[Alert, ...]:
    return tuple(
        alert for alert, role in ALERT_ROLES.items() if has_role_somewhere(user, role)
    )


def alerts_of(user: User) -> tuple[Alert, ...]:
    """Return what a user is mailed about; admins who chose nothing, of what breaks."""
    chosen: Collection[str] | None = preferences_of(user).alerts
    if chosen is None:
        chosen = _ALERTS_OF_ADMINS if has_role(user, Role.ADMIN) else ()
    return tuple(alert for alert in alerts_open_to(user) if alert in chosen)


def users_alerted(alert: Alert) -> QuerySet[User]:
    """Return the users with an address of whom `alerts_of` has this one (one query)."""
    wanted = Q(preferences__alerts__contains=[alert])
    if alert in _ALERTS_OF_ADMINS:
        admins = holders(Role.ADMIN).values("pk")
        wanted |= Q(preferences__alerts__isnull=True, pk__in=admins)
    role = ALERT_ROLES[alert]
    return holders(role, somewhere=True).exclude(email="").filter(wanted)


def end_access(user: User) -> None:
    """End the user's sessions and tokens for good: none works again with the account."""
    ApiToken.objects.owned_by(user).delete()
    for session in Session.objects.iterator():
        if session.get_decoded().get(SESSION_KEY) == str(user.pk):
            session.delete()
