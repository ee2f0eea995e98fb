"""Roles are Django groups: their ranks, and what each may do in REST and the admin.

agent asks and votes; sme also reviews; curator also writes and verifies knowledge;
admin also manages policies, users and every job.
"""

from collections.abc import Mapping
from enum import StrEnum

from django.apps import AppConfig
from django.apps.registry import Apps
from django.apps.registry import apps as global_apps
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts.authentication import remembered_groups


class Role(StrEnum):
    """The four roles, least first; each is the name of a Django group."""

    AGENT = "agent"
    SME = "sme"
    CURATOR = "curator"
    ADMIN = "admin"


_RANK = {role: rank for rank, role in enumerate(Role)}


def has_role(user: AbstractBaseUser | AnonymousUser, least: Role) -> bool:
    """Tell whether an active `user` holds `least` or a role above it (one query at most)."""
    if not isinstance(user, User) or not user.is_active:
        return False
    if user.is_superuser:
        return True
    enough = _at_least(least)
    names = remembered_groups(user)
    if names is not None:
        return not names.isdisjoint(enough)
    return user.groups.filter(name__in=enough).exists()


def holders(least: Role) -> QuerySet[User]:
    """Return the active users who hold `least` or a role above it, each once."""
    in_group = User.groups.through.objects.filter(group__name__in=_at_least(least))
    return User.objects.filter(
        Q(is_superuser=True) | Q(pk__in=in_group.values("user_id")), is_active=True
    )


def _at_least(least: Role) -> list[str]:
    return [role.value for role in Role if _RANK[role] >= _RANK[least]]


def caller(request: HttpRequest | Request) -> User:
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


class HasRole(BasePermission):
    """Lets those in who have `least`, or `reads` to look, if it is another."""

    least: Role
    reads: Role | None = None

    def has_permission(self, request: Request, view: APIView) -> bool:
        reads = self.reads if request.method in SAFE_METHODS else None
        wanted = reads or self.least
        self.message = f"This needs the role {wanted}."
        return has_role(request.user, wanted)


class IsAgent(HasRole):
    least = Role.AGENT


class IsSME(HasRole):
    least = Role.SME


class IsCurator(HasRole):
    least = Role.CURATOR


class IsAdmin(HasRole):
    least = Role.ADMIN


# What each role may do in the admin: Django's model permissions on the role's group.


_READ = ("view",)
_WRITE = ("view", "add", "change")
_ALL = ("view", "add", "change", "delete")

# What a role adds to the roles below it: {app: {model: actions}}.
_ADDED: Mapping[Role, Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    Role.AGENT: {},
    Role.SME: {
        "kb": {
            "knowledgebase": _READ,
            "audience": _READ,
            "document": _READ,
            "section": _READ,
            "entry": _READ,
            "revision": _READ,
            "conflict": _READ,
            "tag": _READ,
        },
        "probes": {"probe": _READ},
        "qa": {
            "answer": _READ,
            "answerevidence": _READ,
            "vote": _READ,
            "escalation": ("view", "change"),
            "gap": ("view", "change"),
            "review": ("view", "change"),
            "reviewsample": _READ,
            "policy": _READ,
            "certificate": _READ,
            "refusalwording": _READ,
            "savedcase": _WRITE,
        },
    },
    Role.CURATOR: {
        "jobs": {"job": _READ},
        "kb": {
            "document": _WRITE,
            "section": _ALL,
            "entry": _WRITE,
            "proposal": ("view", "change"),
            "embeddingmodel": _READ,
            "import": ("view", "add"),
            "followedsource": _ALL,
            "tag": _WRITE,
        },
        "qa": {
            "confidencemove": _READ,
            "reviewsample": ("view", "add"),
            "savedcase": _ALL,
        },
    },
    Role.ADMIN: {
        "accounts": {
            "apitoken": ("view", "delete"),
            "auditentry": _READ,
            "provideraccount": _ALL,
            "providergroup": _ALL,
        },
        "admin": {"logentry": _READ},
        "auth": {"user": _WRITE, "group": _WRITE},
        "integrations": {"endpoint": _ALL, "delivery": _READ, "widget": _ALL},
        "jobs": {"job": ("view", "change")},
        "kb": {
            "knowledgebase": _WRITE,
            "audience": _ALL,
            "document": _ALL,
            "embeddingmodel": ("view", "change"),
            "import": ("view", "add", "delete"),
            "tag": _ALL,
        },
        "probes": {"probe": _WRITE},
        "qa": {
            "policy": _WRITE,
            "refusalwording": _ALL,
            "driftreading": _READ,
            "retraining": _READ,
        },
    },
}


def grant_role_permissions(
    app_config: AppConfig, using: str, apps: Apps = global_apps, **_: object
) -> None:
    """Make the role groups and give them their permissions on one app's models.

    Adds what is missing after each app's migrations and takes nothing away.
    """
    try:
        groups = apps.get_model("auth", "Group").objects.using(using)
        permissions = apps.get_model("auth", "Permission").objects.using(using)
    except LookupError:  # only some apps were migrated, and auth was not among them
        return
    codenames: set[str] = set()
    with transaction.atomic(using=using):
        for role in Role:
            group, _made = groups.get_or_create(name=role.value)
            for model, actions in _ADDED[role].get(app_config.label, {}).items():
                codenames.update(f"{action}_{model}" for action in actions)
            group.permissions.add(
                *permissions.filter(
                    content_type__app_label=app_config.label, codename__in=codenames
                )
            )
