"""Writing tags: what knowledge is divided by, and who knows of it."""

from collections.abc import Sequence
from typing import TypedDict, Unpack

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from accounts.roles import Role, holders
from kb.exceptions import InvalidKnowledgeError, TagExistsError
from kb.tags.models import Tag
from kb.text.cleaning import clean_line

NAME_LIMIT = 100


class TagChanges(TypedDict, total=False):
    name: str
    experts: Sequence[User]


@transaction.atomic
def create_tag(
    *, slug: str, name: str, facet: str, experts: Sequence[User] = ()
) -> Tag:
    cleaned = clean_line(name, field="name", limit=NAME_LIMIT)
    try:
        with transaction.atomic():
            tag = Tag.objects.create(slug=slug, name=cleaned, facet=facet)
    except IntegrityError as error:
        raise TagExistsError(
            f"There is a tag {slug!r} already; take another slug."
        ) from error
    tag.experts.set(_experts(experts))
    return tag


@transaction.atomic
def edit_tag(tag: Tag, **changes: Unpack[TagChanges]) -> Tag:
    if "name" in changes:
        tag.name = clean_line(changes["name"], field="name", limit=NAME_LIMIT)
        tag.save(update_fields=["name"])
    if "experts" in changes:
        tag.experts.set(_experts(changes["experts"]))
    return tag


def _experts(users: Sequence[User]) -> Sequence[User]:
    able = set(holders(Role.SME).filter(pk__in=[user.pk for user in users]))
    for user in users:
        if user not in able:
            raise InvalidKnowledgeError(
                "experts",
                f"{user.get_username()} may not review; give them the role sme first.",
            )
    return users
