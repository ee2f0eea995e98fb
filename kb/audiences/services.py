"""Writing audiences: which groups may see which entries."""

from collections.abc import Sequence

from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction

from kb.audiences.models import Audience
from kb.exceptions import (
    AudienceExistsError,
    AudienceNotFoundError,
    InvalidKnowledgeError,
)
from kb.text.cleaning import clean_line, clean_slug

NAME_LIMIT = 100


@transaction.atomic
def create_audience(
    *, slug: str, name: str, everyone: bool = False, groups: Sequence[str] = ()
) -> Audience:
    """Create an audience of everyone or of the members of the groups named."""
    clean_slug(slug)
    members = _groups(groups)
    try:
        with transaction.atomic():
            audience = Audience.objects.create(
                slug=slug,
                name=clean_line(name, field="name", limit=NAME_LIMIT),
                everyone=everyone,
            )
    except IntegrityError as error:
        raise AudienceExistsError(
            f"There is already an audience {slug!r}; choose another slug."
        ) from error
    audience.groups.set(members)
    return audience


def ensure_audience() -> None:
    """Create an audience of everyone if there is none, because entries need one."""
    if not Audience.objects.exists():
        create_audience(slug="everyone", name="All agents", everyone=True)


@transaction.atomic
def edit_audience(
    *,
    audience_id: int,
    name: str | None = None,
    everyone: bool | None = None,
    groups: Sequence[str] | None = None,
) -> Audience:
    """Change an audience; who sees what changes with the commit."""
    audience = Audience.objects.select_for_update().filter(pk=audience_id).first()
    if audience is None:
        raise AudienceNotFoundError(f"There is no audience {audience_id}.")
    if name is not None:
        audience.name = clean_line(name, field="name", limit=NAME_LIMIT)
    if everyone is not None:
        audience.everyone = everyone
    audience.save()
    if groups is not None:
        audience.groups.set(_groups(groups))
    return audience


def _groups(names: Sequence[str]) -> list[Group]:
    found = list(Group.objects.filter(name__in=names))
    missing = sorted(set(names) - {group.name for group in found})
    if missing:
        raise InvalidKnowledgeError(
            "groups",
            f"There is no group {', '.join(repr(name) for name in missing[:20])}; "
            "create it in the admin first.",
        )
    return found
