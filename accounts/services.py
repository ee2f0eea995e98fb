"""Services that write users' tokens, groups, roles, preferences and sessions."""

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
# None never expires; "default" is NESCIO_TOKEN_DAYS.
Lifetime = timedelta | None | Literal["default"]


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A new token: its row, and the secret, which is shown once and never stored."""

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
    """Create a token, valid until it expires, is revoked or `user` becomes inactive."""
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
    """Raise `LocalSignInOffError` if sign-in by password is switched off."""
    if not settings.LOCAL_SIGN_IN:
        raise LocalSignInOffError(
            f"Passwords are switched off here. Sign in with {settings.OIDC_NAME}; tokens "
            "for programs are created on the page API tokens."
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
    """Return the tokens `by` may revoke: a superuser's only as superuser or owner."""
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
    """Replace the user's groups; from the role sme on, they may use the admin."""
    user.groups.set(groups)
    update_staff(user)


def update_staff(user: User) -> None:
    """Grant or withdraw access to the admin after a change of role."""
    is_staff = has_role_somewhere(user, Role.SME)
    if user.is_staff != is_staff:
        user.is_staff = is_staff
        user.save(update_fields=["is_staff"])


@contextmanager
def keeping_staff(chosen: Callable[[], QuerySet[User]]) -> Iterator[None]:
    """Update access to the admin for users whose roles change within the block.

    Args:
        chosen: Returns the users who may be affected; called before and after.
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
    """Return the users who have these roles, themselves or through a group."""
    groups = rows.filter(group__isnull=False).values("group")
    members = User.groups.through.objects.filter(group__in=groups).values("user_id")
    own = rows.filter(user__isnull=False).values("user")
    return User.objects.filter(Q(pk__in=own) | Q(pk__in=members))


@transaction.atomic
def set_knowledge_roles(user: User, roles: Mapping[int, str]) -> None:
    """Replace the user's own roles in single knowledge bases; those of groups stay.

    Args:
        roles: The role by the knowledge base's id.
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
"""The role that may choose an alert; a role in a single knowledge base is enough."""
_ALERTS_OF_ADMINS = (Alert.FAILURES, Alert.DRIFT)


def alerts_open_to(user: User) -> tuple[Alert, ...]:
    return tuple(
        alert for alert, role in ALERT_ROLES.items() if has_role_somewhere(user, role)
    )


def alerts_of(user: User) -> tuple[Alert, ...]:
    """Return the alerts a user is mailed; failures and drift for admins by default."""
    chosen: Collection[str] | None = preferences_of(user).alerts
    if chosen is None:
        chosen = _ALERTS_OF_ADMINS if has_role(user, Role.ADMIN) else ()
    return tuple(alert for alert in alerts_open_to(user) if alert in chosen)


def users_alerted(alert: Alert) -> QuerySet[User]:
    """Return the users with a mail address whose `alerts_of` includes this one."""
    wanted = Q(preferences__alerts__contains=[alert])
    if alert in _ALERTS_OF_ADMINS:
        admins = holders(Role.ADMIN).values("pk")
        wanted |= Q(preferences__alerts__isnull=True, pk__in=admins)
    role = ALERT_ROLES[alert]
    return holders(role, somewhere=True).exclude(email="").filter(wanted)


def end_access(user: User) -> None:
    """Delete the user's sessions and tokens, so that reactivation revives none."""
    ApiToken.objects.owned_by(user).delete()
    for session in Session.objects.iterator():
        if session.get_decoded().get(SESSION_KEY) == str(user.pk):
            session.delete()
