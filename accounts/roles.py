"""Roles, which are Django groups: their ranks, and which user has which role where.

agent asks and votes; sme also reviews; curator also writes and verifies knowledge;
admin also manages policies, users and every job.

A `KnowledgeRole` is one of these in a single knowledge base. `has_role` ignores it, so
that it grants nothing outside of that knowledge base; `has_role_in` and `where_role`
count it.
"""

from enum import StrEnum
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts.authentication import rights_of
from accounts.exceptions import RoleElsewhereError
from accounts.models import KnowledgeRole
from accounts.people import AnyUser


class Role(StrEnum):
    """The four roles, lowest first; each is the name of a Django group."""

    AGENT = "agent"
    SME = "sme"
    CURATOR = "curator"
    ADMIN = "admin"


RANK = {role: rank for rank, role in enumerate(Role)}


def has_role(user: AnyUser, least: Role) -> bool:
    """Return whether an active `user` has `least` or a higher role everywhere.

    A user with a role in some knowledge base is an agent everywhere. One query at most.
    """
    return bases_of_role(user, least) is None


def bases_of_role(user: AnyUser, least: Role) -> frozenset[int] | None:
    """Return the ids of the knowledge bases where `user` has the role; None for all."""
    if not isinstance(user, User) or not user.is_active:
        return frozenset()
    if user.is_superuser:
        return None
    enough = _at_least(least)
    names, roles = rights_of(user)
    if not names.isdisjoint(enough) or (roles and least == Role.AGENT):
        return None
    return frozenset(base for base, role in roles if role in enough)


def has_role_in(user: AnyUser, least: Role, knowledge_base_id: int) -> bool:
    bases = bases_of_role(user, least)
    return bases is None or knowledge_base_id in bases


def has_role_somewhere(user: AnyUser, least: Role) -> bool:
    return bases_of_role(user, least) != frozenset()


def where_role(user: AnyUser, least: Role, path: str = "knowledge_base") -> Q:
    """Return the condition that `user` has the role in a row's knowledge base.

    Args:
        path: The lookup from the row to its knowledge base.
    """
    return _within(bases_of_role(user, least), path)


def reach_of(user: AnyUser | None, least: Role) -> frozenset[int] | None:
    """Return the ids of the knowledge bases that a user's work is limited to, if any.

    Returns None for no limit. Only users with roles in single knowledge bases are
    limited; whether others may work at all, the view has already checked. Jobs and
    commands without a user have no limit either.
    """
    bases = None if user is None else bases_of_role(user, least)
    if bases == frozenset() and not (isinstance(user, User) and rights_of(user)[1]):
        return None
    return bases


def where_not_elsewhere(user: AnyUser, *paths: str) -> Q:
    """Return the condition that rows are in knowledge bases where `user` may review.

    Args:
        paths: The lookups from a row to its knowledge bases; default: "knowledge_base".
    """
    reach = reach_of(user, Role.SME)
    found = Q()
    for path in paths or ("knowledge_base",):
        found &= _within(reach, path)
    return found


def refuse_elsewhere(
    user: User | None, knowledge_base_id: int, least: Role = Role.CURATOR
) -> None:
    """Raise `RoleElsewhereError` if the knowledge base is out of the user's reach."""
    check_reach(reach_of(user, least), knowledge_base_id, least)


def check_reach(
    reach: frozenset[int] | None, knowledge_base_id: int, least: Role
) -> None:
    if reach is not None and knowledge_base_id not in reach:
        base: Any = KnowledgeRole._meta.get_field("knowledge_base").related_model
        name = base.objects.get(pk=knowledge_base_id)
        raise RoleElsewhereError(
            f"This needs the role {least} in the knowledge base {name}, which you do not "
            "have; an admin can grant it."
        )


def _within(bases: frozenset[int] | None, path: str) -> Q:
    return Q() if bases is None else Q(**{f"{path}__in": bases})


def holders(
    least: Role, *, knowledge_base_id: int | None = None, somewhere: bool = False
) -> QuerySet[User]:
    """Return the active users who have `least` or a higher role, each once.

    Args:
        knowledge_base_id: Also count a role in this knowledge base.
        somewhere: Also count a role in any knowledge base.
    """
    enough = _at_least(least)
    in_group = User.groups.through.objects.filter(group__name__in=enough)
    held = Q(is_superuser=True) | Q(pk__in=in_group.values("user_id"))
    if somewhere or least == Role.AGENT or knowledge_base_id is not None:
        roles = KnowledgeRole.objects.filter(role__in=enough)
        if knowledge_base_id is not None and least != Role.AGENT:
            roles = roles.filter(knowledge_base=knowledge_base_id)
        groups = roles.filter(group__isnull=False).values("group")
        members = User.groups.through.objects.filter(group__in=groups)
        own = roles.filter(user__isnull=False).values("user")
        held |= Q(pk__in=own) | Q(pk__in=members.values("user_id"))
    return User.objects.filter(held, is_active=True)


def where_holder(least: Role, user: str, knowledge_base: str) -> Q:
    """Return the condition that a row's user is active and has the role in its base.

    Args:
        user: The lookup from the row to the user.
        knowledge_base: The lookup from the row to its knowledge base.
    """
    there = KnowledgeRole.objects.filter(
        Q(user=OuterRef(user)) | Q(group__user=OuterRef(user)),
        role__in=_at_least(least),
        knowledge_base=OuterRef(knowledge_base),
    )
    anywhere = Q(**{f"{user}__in": holders(least)})
    only_there = Q(Exists(there), **{f"{user}__is_active": True})
    # The first condition is implied by the others, but lets the database skip the many
    # rows without a user.
    return Q(**{f"{user}__isnull": False}) & (anywhere | only_there)


def _at_least(least: Role) -> list[str]:
    return [role.value for role in Role if RANK[role] >= RANK[least]]


def caller(request: HttpRequest | Request) -> User:
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def is_live(request: HttpRequest) -> bool:
    """Return whether HTMX requests a part of a page."""
    return request.headers.get("HX-Request") == "true"


class HasRole(BasePermission):
    """Requires the role `least`, or for reading `reads`, if set.

    With `somewhere`, a role in one knowledge base is enough: for views whose querysets
    and services check it for each row.
    """

    least: Role
    reads: Role | None = None
    somewhere = False

    def wanted(self, method: str | None) -> Role:
        return (self.reads if method in SAFE_METHODS else None) or self.least

    def has_permission(self, request: Request, view: APIView) -> bool:
        wanted = self.wanted(request.method)
        self.message = f"This needs the role {wanted}."
        if self.somewhere:
            return has_role_somewhere(request.user, wanted)
        if has_role(request.user, wanted):
            return True
        if has_role_somewhere(request.user, wanted):
            self.message = (
                f"This concerns all knowledge bases and needs the role {wanted} in all "
                "of them; you have it only in some."
            )
        return False


class IsAgent(HasRole):
    least = Role.AGENT


class IsSME(HasRole):
    least = Role.SME


class IsCurator(HasRole):
    least = Role.CURATOR


class IsAdmin(HasRole):
    least = Role.ADMIN


class IsSMESomewhere(IsSME):
    somewhere = True


class IsCuratorSomewhere(IsCurator):
    somewhere = True
