"""Choices that list pages offer to their readers."""

from collections.abc import Callable

from django.contrib.auth.models import User

from accounts.roles import Role, bases_of_role
from kb.documents.models import KnowledgeBase


def base_choices(
    user: User, chosen: KnowledgeBase | None, query: Callable[[str], str]
) -> list[tuple[str, str, bool]]:
    """Return an expert's knowledge bases to choose from, if there are several.

    Each with its name, the query that selects it by its slug, and whether it is
    selected.
    """
    own = bases_of_role(user, Role.SME)
    rows = KnowledgeBase.objects.in_use().order_by("name")
    found = list(rows if own is None else rows.filter(pk__in=own))
    if len(found) < 2:
        return []
    each = [(base.name, query(base.slug), base == chosen) for base in found]
    return [("All", query(""), chosen is None), *each]
