"""Names of people: the full name on pages, full and user name where one is chosen."""

from collections.abc import Iterable

from django import template
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group, User
from django.db.models import CharField, Q, QuerySet, Value
from django.db.models.functions import Coalesce, Concat, Lower, NullIf, Trim

AnyUser = AbstractBaseUser | AnonymousUser
"""A user, signed in or anonymous."""

_FULL_NAME = Trim(Concat("first_name", Value(" "), "last_name"))

register = template.Library()  # the settings load it into all templates


@register.filter(name="person")
def person_name(user: AbstractBaseUser | None) -> str:
    """Return the full name, or the user name if there is none; "" for None."""
    if user is None:
        return ""
    return (isinstance(user, User) and user.get_full_name()) or user.get_username()


def group_names(groups: Iterable[Group]) -> list[str]:
    """Return the names, sorted: the database returns groups in any order."""
    return sorted(group.name for group in groups)


def _label(user: User) -> str:
    """Return the full name, if any, with the user name, which is unique."""
    name, sign_in = user.get_full_name(), user.get_username()
    return f"{name} ({sign_in})" if name else sign_in


def label_people() -> None:
    """Make the admin's lists, choices and filters show people by full and user name."""
    User.add_to_class("__str__", _label)


def people_named(part: str) -> QuerySet[User]:
    """Return the users whose full name or user name contains `part`, in any case."""
    full = User.objects.annotate(full_name=_FULL_NAME)
    return full.filter(Q(username__icontains=part) | Q(full_name__icontains=part))


def find_person(name: str, among: QuerySet[User] | None = None) -> User | None:
    """Return the active user with this user name, or else with this full name.

    Returns None if nobody has the name, or several people share the full name.
    """
    people = User.objects.all() if among is None else among
    active = people.filter(is_active=True)
    if (found := active.filter(username=name).first()) or not name:
        return found
    alike = active.annotate(full_name=_FULL_NAME).filter(full_name__iexact=name)[:2]
    return alike[0] if len(alike) == 1 else None


def by_name(people: QuerySet[User]) -> QuerySet[User]:
    """Return people sorted by displayed name, loading only the fields of names."""
    full = NullIf(_FULL_NAME, Value(""))
    called = Lower(Coalesce(full, "username", output_field=CharField()))
    named = people.only("username", "first_name", "last_name")
    return named.order_by(called, "username")
