"""Roles are Django groups: their ranks, and who holds which where.

agent asks and votes; sme also reviews; curator also writes and verifies knowledge;
admin also manages policies, users and every job.

A `KnowledgeRole` is one of these in one knowledge base. `has_role` doesn't count it, so
that what isn't a knowledge base's stays closed; `has_role_in` and `where_role` do.
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
    """The four roles, least first; each is the name of a Django group."""

    AGENT = "agent"
    SME = "sme"
    CURATOR = "curator"
    ADMIN = "admin"


RANK = {role: rank for rank, role in enumerate(Role)}


def has_role(user: AnyUser, least: Role) -> bool:
    """Tell whether an active `user` holds `least` or a role above it everywhere.

    Who has a role in some knowledge base is an agent everywhere. One query at most.
    """
    return bases_of_role(user, least) is None


def bases_of_role(user: AnyUser, least: Role) -> frozenset[int] | None:
    """Return the ids of the knowledge bases in which `user` has a role; None: in all."""
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
    """Return the condition that a row is of a knowledge base where `user` has a role.

    Args:
        path: From the row to its knowledge base, as in a lookup.
    """
    return _within(bases_of_role(user, least), path)


def reach_of(user: AnyUser | None, least: Role) -> frozenset[int] | None:
    """Return the ids of the knowledge bases that a user's work is held to; None: to none.

    Only who has roles in single ones is held to these: whether others may work at all,
    their way in has asked. So are nobody's jobs and commands free.
    """
    bases = None if user is None else bases_of_role(user, least)
    if bases == frozenset() and not (isinstance(user, User) and rights_of(user)[1]):
        return None
    return bases


def where_not_elsewhere(user: AnyUser, *paths: str) -> Q:
    """Return the condition that rows of work are within the reach of an expert.

    Args:
        paths: From a row to its knowledge bases, by default one, "knowledge_base".
    """
    reach = reach_of(user, Role.SME)
    found = Q()
    for path in paths or ("knowledge_base",):
        found &= _within(reach, path)
    return found


def refuse_elsewhere(
    user: User | None, knowledge_base_id: int, least: Role = Role.CURATOR
) -> None:
    """Raise `RoleElsewhereError` for work outside of the reach of `user`."""
    check_reach(reach_of(user, least), knowledge_base_id, least)


def check_reach(
    reach: frozenset[int] | None, knowledge_base_id: int, least: Role
) -> None:
    if reach is not None and knowledge_base_id not in reach:
        base: Any = KnowledgeRole._meta.get_field("knowledge_base").related_model
        name = base.objects.get(pk=knowledge_base_id)
        raise RoleElsewhereError(
            f"This needs the role {least} in the knowledge base {name}, which you do not "
            "have; an admin gives it."
        )


def _within(bases: frozenset[int] | None, path: str) -> Q:
    return Q() if bases is None else Q(**{f"{path}__in": bases})


def holders(
    least: Role, *, knowledge_base_id: int | None = None, somewhere: bool = False
) -> QuerySet[User]:
    """Return the active users who hold `least` or a role above it, each once.

    Args:
        knowledge_base_id: Count also a role in this knowledge base.
        somewhere: Count also a role in any.
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
    """Return the condition that the active user whom a row names has a role where it is.

    Args:
        user: From the row to the user, as in a lookup.
        knowledge_base: From the row to its knowledge base.
    """
    there = KnowledgeRole.objects.filter(
        Q(user=OuterRef(user)) | Q(group__user=OuterRef(user)),
        role__in=_at_least(least),
        knowledge_base=OuterRef(knowledge_base),
    )
    anywhere = Q(**{f"{user}__in": holders(least)})
    only_there = Q(Exists(there), **{f"{user}__is_active": True})
    # That there is somebody is said although it follows: few rows name one, and the
    # database then looks at these alone.
    return Q(**{f"{user}__isnull": False}) & (anywhere | only_there)


def _at_least(least: Role) -> list[str]:
    return [role.value for role in Role if RANK[role] >= RANK[least]]


def caller(request: HttpRequest | Request) -> User:
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def is_live(request: HttpRequest) -> bool:
    """Tell whether HTMX asks for a part of a page."""
    return request.headers.get("HX-Request") == "true"


class HasRole(BasePermission):
    """Lets those in who have `least`, or `reads` to look, if it is another.

    With `somewhere`, a role in one knowledge base is enough: for views whose rows and
    services hold to it.
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
                f"This is about all knowledge bases and needs the role {wanted} in all of "
                "them; you have it in single ones."
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
