"""The model permissions in the admin that each role's group gets."""

from collections.abc import Mapping

from django.apps import AppConfig
from django.apps.registry import Apps
from django.apps.registry import apps as global_apps
from django.contrib.auth.models import User
from django.db import transaction

from accounts.authentication import rights_of
from accounts.roles import RANK, Role

_READ = ("view",)
_WRITE = ("view", "add", "change")
_ALL = ("view", "add", "change", "delete")

# The permissions that a role adds to those of the roles below it: {app: {model:
# actions}}.
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
            "synonym": _READ,
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
            "synonym": ("view", "add", "delete"),
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
            "knowledgerole": _ALL,
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


# The models, by app, to which these permissions also apply for a role in one knowledge
# base: those whose rows belong to a knowledge base. Shared ones (`_SHARED`) may be
# viewed.
_OF_BASES = {
    "jobs": {"job"},
    "kb": {
        "document", "section", "entry", "revision", "conflict", "proposal", "import",
        "followedsource", "synonym",
    },
    "qa": {
        "answer", "answerevidence", "vote", "escalation", "gap", "review",
        "reviewsample", "savedcase",
    },
}  # fmt: skip
_SHARED = {"kb": {"knowledgebase", "audience", "tag"}}


def permissions_in_bases(user: User) -> set[str]:
    """Return the model permissions of the user's roles in single knowledge bases."""
    held = {role for _, role in rights_of(user)[1]}
    if not held:
        return set()
    highest = max(map(RANK.__getitem__, map(Role, held)))
    return {
        f"{app}.{verb}_{model}"
        for role, apps in _ADDED.items()
        if RANK[role] <= highest
        for app, models in apps.items()
        for model, actions in models.items()
        for verb in actions
        if model in _OF_BASES.get(app, ())
        or (verb == "view" and model in _SHARED.get(app, ()))
    }


def grant_role_permissions(
    app_config: AppConfig, using: str, apps: Apps = global_apps, **_: object
) -> None:
    """Create the role groups and grant them their permissions on one app's models.

    Runs after each app's migrations; adds missing permissions and removes none.
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
