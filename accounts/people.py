"""What people are called: on pages by their full name, where they are chosen by both names."""

from collections.abc import Iterable

from django import template
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group, User
from django.db.models import CharField, Q, QuerySet, Value
from django.db.models.functions import Coalesce, Concat, Lower, NullIf, Trim

AnyUser = AbstractBaseUser | AnonymousUser
"""Who reads or asks, signed in or not."""

_FULL_NAME = Trim(Concat("first_name", Value(" "), "last_name"))

register = template.Library()  # a built-in of all templates, by the settings


@register.filter(name="person")
def person_name(user: AbstractBaseUser | None) -> str:
    """Return the full name, or the name to sign in with where there is none; "" of nobody."""
    if user is None:
        return ""
    return (isinstance(user, User) and user.get_full_name()) or user.get_username()


def group_names(groups: Iterable[Group]) -> list[str]:
    """Return the names, sorted: groups come from the database in any order."""
    return sorted(group.name for group in groups)


def _label(user: User) -> str:
    """Return the full name, if any, with the name to sign in with, which is nobody else's."""
    name, sign_in = user.get_full_name(), user.get_username()
    return f"{name} ({sign_in})" if name else sign_in


def label_people() -> None:
    """Let lists, choices, filters and searches of the admin name people by both names."""
    User.add_to_class("__str__", _label)


def people_named(part: str) -> QuerySet[User]:
    """Return those in whose full name, or name to sign in with, this is."""
    full = User.objects.annotate(full_name=_FULL_NAME)
    return full.filter(Q(username__icontains=part) | Q(full_name__icontains=part))


def find_person(name: str, among: QuerySet[User] | None = None) -> User | None:
    """Return who has a name to sign in with, or else alone a full name; of the active ones."""
    people = User.objects.all() if among is None else among
    active = people.filter(is_active=True)
    if (found := active.filter(username=name).first()) or not name:
        return found
    alike = active.annotate(full_name=_FULL_NAME).filter(full_name__iexact=name)[:2]
    return alike[0] if len(alike) == 1 else None


def by_name(people: QuerySet[User]) -> QuerySet[User]:
    """Return people in the order of what they are called, with what that takes alone."""
    full = NullIf(_FULL_NAME, Value(""))
    called = Lower(Coalesce(full, "username", output_field=CharField()))
    named = people.only("username", "first_name", "last_name")
    return named.order_by(called, "username")
