"""Factories for test rows; entries are written through the services, as in the product.

Entries are really embedded, with the bundled model; use `make_entries` for many of
them, which encodes them in one batch.
"""

import itertools
from collections.abc import Sequence
from typing import Any, cast

from django.contrib.auth.models import Group, User

from accounts.roles import Role
from kb.entries.services import create_entries, create_entry
from kb.entries.states import retire_entry
from kb.entries.values import NewEntry
from kb.models import Audience, Document, Entry, KnowledgeBase, Tag
from qa.models import Policy

_numbers = itertools.count(1)


def make_user(
    role: Role | None = Role.AGENT, *, username: str = "", groups: Sequence[str] = ()
) -> User:
    """Make an active user without a password, in the role's group and in `groups`."""
    user = User.objects.create_user(username or f"user{next(_numbers)}")
    names = [*([role.value] if role else []), *groups]
    user.groups.set([Group.objects.get_or_create(name=name)[0] for name in names])
    return user


def set_role(user: User, *, role: Role) -> None:
    """Replace the roles of `user` with this one; all but agents may open the admin."""
    user.groups.remove(*user.groups.filter(name__in=[each.value for each in Role]))
    user.groups.add(Group.objects.get(name=role.value))
    user.is_staff = user.is_superuser or role != Role.AGENT
    user.save(update_fields=["is_staff"])


def make_staff(
    role: Role | None = Role.AGENT, *, username: str = "", groups: Sequence[str] = ()
) -> User:
    """Make a user like `make_user`, who may also open the admin."""
    user = make_user(role, username=username, groups=groups)
    user.is_staff = True
    user.save(update_fields=["is_staff"])
    return user


def make_knowledge_base(slug: str = "cards", *, language: str = "en") -> KnowledgeBase:
    """Return the knowledge base `slug`, creating it on first use."""
    return KnowledgeBase.objects.get_or_create(
        slug=slug, defaults={"name": slug.title(), "language": language}
    )[0]


def make_audience(slug: str = "everyone", *, groups: Sequence[str] = ()) -> Audience:
    """Return the audience `slug`, creating it on first use for `groups` or everyone."""
    audience, _ = Audience.objects.get_or_create(
        slug=slug, defaults={"name": slug.title(), "everyone": not groups}
    )
    audience.groups.add(*[Group.objects.get_or_create(name=name)[0] for name in groups])
    return audience


def make_tag(
    slug: str = "gold-card", *experts: User, facet: str = Tag.Facet.PRODUCT_LINE
) -> Tag:
    """Return the tag `slug`, creating it on first use; add these experts to it."""
    tag, _ = Tag.objects.get_or_create(
        slug=slug, defaults={"name": slug.title(), "facet": facet}
    )
    tag.experts.add(*experts)
    return tag


def make_document(title: str = "Price list", **fields: Any) -> Document:
    """Make a document for everyone in the default knowledge base, without sections."""
    fields.setdefault("knowledge_base", make_knowledge_base())
    fields.setdefault("audience", make_audience())
    return Document.objects.create(title=title, **fields)


def make_curator() -> User:
    """Return the user "curator", the default author, creating it on first use."""
    found = User.objects.filter(username="curator").first()
    return found or make_user(Role.CURATOR, username="curator")


def make_entry(
    text: str = "A replacement card costs 12 euros.", **fields: Any
) -> Entry:
    """Write an entry for everyone in the default knowledge base.

    It is verified unless `state`, `confidence` or `verify` is given; with
    `state="retired"` it is verified and then retired.
    """
    author = fields.pop("author", None) or make_curator()
    retired = fields.get("state") == Entry.State.RETIRED
    if retired:
        del fields["state"]
    fields.setdefault("verify", not fields.keys() & {"state", "confidence"})
    fields.setdefault("knowledge_base", make_knowledge_base())
    if "document" not in fields and "section" not in fields:
        fields.setdefault("audience", make_audience())
    entry = create_entry(
        text=text, author=author, audience=fields.pop("audience", None), **fields
    )
    return retire_entry(entry_id=entry.pk, by=author) if retired else entry


def make_entries(texts: Sequence[str], **fields: Any) -> tuple[Entry, ...]:
    """Write many verified entries in one batch, each as `make_entry` would."""
    fields = {
        "knowledge_base": make_knowledge_base(),
        "audience": make_audience(),
        "verify": True,
        **fields,
    }
    return create_entries(
        [cast(NewEntry, {"text": text, **fields}) for text in texts],
        author=make_curator(),
    )


def put_in_force(policy: Policy) -> Policy:
    """Activate a version directly, even one that `activate` rejects as uncalibrated."""
    rows = Policy.objects.filter(knowledge_base=policy.knowledge_base)
    rows.filter(is_active=True).update(is_active=False)
    rows.filter(pk=policy.pk).update(is_active=True)
    policy.is_active = True
    return policy
