"""Roles are Django groups; a role's rank includes what the ranks below it may do.

agent asks and votes; sme also reviews; curator also writes and verifies knowledge;
admin also manages policies, users and every job.
"""

from enum import StrEnum

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts.groups import remembered_groups


class Role(StrEnum):
    """The four roles, least first; each is the name of a Django group."""

    AGENT = "agent"
    SME = "sme"
    CURATOR = "curator"
    ADMIN = "admin"


_RANK = {role: rank for rank, role in enumerate(Role)}


def has_role(user: AbstractBaseUser | AnonymousUser, least: Role) -> bool:
    """Tell whether an active `user` holds `least` or a role above it.

    A superuser holds every role. One query where the groups are not remembered.
    """
    if not isinstance(user, User) or not user.is_active:
        return False
    if user.is_superuser:
        return True
    enough = [role.value for role in Role if _RANK[role] >= _RANK[least]]
    names = remembered_groups(user)
    if names is not None:
        return not names.isdisjoint(enough)
    return user.groups.filter(name__in=enough).exists()


class _HasRole(BasePermission):
    least: Role

    def has_permission(self, request: Request, view: APIView) -> bool:
        return has_role(request.user, self.least)


class IsAgent(_HasRole):
    """May ask questions and vote on the answers."""

    message = "This needs the role agent."
    least = Role.AGENT


class IsSME(_HasRole):
    """May review answers as a subject-matter expert."""

    message = "This needs the role sme."
    least = Role.SME


class IsCurator(_HasRole):
    """May write, verify and retire knowledge."""

    message = "This needs the role curator."
    least = Role.CURATOR


class IsAdmin(_HasRole):
    """May change policies and see everybody's answers and jobs."""

    message = "This needs the role admin."
    least = Role.ADMIN
