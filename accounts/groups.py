"""The names of a user's groups, read along with the credential that a request came with."""

from collections.abc import Iterable

from django.contrib.auth.models import User

_KEPT = "_group_names"


def remember_groups(user: User, names: Iterable[str]) -> None:
    """Keep the names with this instance, which lives as long as its request."""
    setattr(user, _KEPT, frozenset(names))


def remembered_groups(user: User) -> frozenset[str] | None:
    """Return what was kept with this instance, if anything was."""
    names: frozenset[str] | None = getattr(user, _KEPT, None)
    return names
