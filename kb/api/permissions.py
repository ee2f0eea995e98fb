from django.contrib.auth.models import User
from rest_framework.exceptions import NotAuthenticated
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts.roles import Role, has_role


class _ReadOrWrite(BasePermission):
    writes: Role

    def has_permission(self, request: Request, view: APIView) -> bool:
        least = Role.AGENT if request.method in SAFE_METHODS else self.writes
        self.message = f"This needs the role {least}."
        return has_role(request.user, least)


class AgentReadsCuratorWrites(_ReadOrWrite):
    """Entries and documents."""

    writes = Role.CURATOR


class AgentReadsAdminWrites(_ReadOrWrite):
    """Audiences, which decide who sees what."""

    writes = Role.ADMIN


def caller(request: Request) -> User:
    """Return who is signed in.

    Raises:
        NotAuthenticated: Nobody is.
    """
    if not isinstance(request.user, User):
        raise NotAuthenticated
    return request.user
