"""How many wait, as every page's navigation says it."""

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.http import HttpRequest

from accounts.roles import Role, has_role
from qa.inbox.services import COUNTED, count_waiting

_KEPT = "_inbox_count"  # of a request


def is_for(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Tell whether a person has an inbox: experts and above who may open the admin."""
    return isinstance(user, User) and user.is_staff and has_role(user, Role.SME)


def shown(number: int) -> str:
    """Return a count as it is shown; none beyond what is counted."""
    return f"{number}+" if number >= COUNTED else str(number)


def said_count(request: HttpRequest) -> str:
    """Return how many wait for the request's user, looked up once; "" for none."""
    if not is_for(request.user):
        return ""
    if not hasattr(request, _KEPT):
        numbers = count_waiting(request.user).values()  # type: ignore[arg-type]  # `is_for` holds
        is_more = any(number >= COUNTED for number in numbers)
        total = sum(numbers)
        setattr(request, _KEPT, f"{total}+" if is_more else str(total or ""))
    said: str = getattr(request, _KEPT)
    return said


def badge(request: HttpRequest) -> str:
    """Return what the admin's navigation shows, which has no place for nothing."""
    return said_count(request) or "0"


def may_open(request: HttpRequest) -> bool:
    return is_for(request.user)
