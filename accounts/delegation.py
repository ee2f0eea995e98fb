"""Delegation: a service account's token may act for a named user, with their rights.

Its questions are stored, found and counted as that user's; the log, the answer and the
audit name the service.
"""

import logging
from urllib.parse import unquote

from django.contrib.auth.models import User
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request

from accounts.authentication import (
    ApiTokenAuthentication,
    find_user,
    remember_groups,
    rights_of,
)
from accounts.exceptions import NescioError
from accounts.models import ApiToken

logger = logging.getLogger(__name__)

HEADER = "X-Nescio-On-Behalf-Of"
_SERVICE = "_service"


class UnknownUserError(NescioError):
    """The header does not name an active user."""

    code = "unknown_user"


class DelegatingTokenAuthentication(ApiTokenAuthentication):
    """Authentication by API token; a delegating one acts as the user in the header.

    That user's role counts as agent at most: nothing is verified, changed or
    administered on behalf of somebody else.
    """

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        found = super().authenticate(request)
        named = request.headers.get(HEADER)
        if found is None or named is None:
            return found
        # REST framework's views import this module, and `roles` imports those.
        from accounts.roles import Role, has_role  # noqa: PLC0415

        service, token = found
        if not token.may_act_for_others or not has_role(service, Role.AGENT):
            raise PermissionDenied(
                f"This token may not act for others; leave {HEADER} out, or make one by "
                "manage.py create_token --acts-for-others, for a user with the role agent."
            )
        user = acted_for(unquote(named), service=service, named_by=HEADER)
        logger.info(
            "Token %s of %s acts for %s: %s %s",
            token.pk, service.username, user.username, request.method, request.path,
        )  # fmt: skip
        return user, token


def acted_for(name: str, *, service: User, named_by: str) -> User:
    """Return the user with this name, limited to agent, for whom `service` acts.

    Args:
        named_by: The header or field that held the name, for the error.

    Raises:
        UnknownUserError: There is no active user with this name.
        PermissionDenied: The user is a superuser.
    """
    user = find_user(username=name, is_active=True) if "\0" not in name else None
    if user is None:
        raise UnknownUserError(
            f"{named_by} is {name[:150]!r}, and there is no active user with this name."
        )
    if user.is_superuser:
        raise PermissionDenied(
            f"{user.username!r} is a superuser, and no token may act for a superuser."
        )
    limit_to_agent(user)
    setattr(user, _SERVICE, service.username)
    return user


def limit_to_agent(user: User) -> None:
    """Reduce the roles of `user` to agent, for this instance only."""
    # REST framework's views import this module, and `roles` imports those.
    from accounts.roles import Role, has_role  # noqa: PLC0415

    names, _ = rights_of(user)
    roles = frozenset(role.value for role in Role)
    as_agent = {Role.AGENT.value} if has_role(user, Role.AGENT) else set()
    remember_groups(user, names - roles | as_agent)


def acting_service(user: object) -> str:
    """Return the name of the service that acts for this user; empty if none does."""
    name: str = getattr(user, _SERVICE, "")
    return name
