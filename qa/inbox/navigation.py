"""How many wait, as every page's navigation says it."""

from collections.abc import Mapping

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.people import AnyUser
from accounts.roles import Role, caller, has_role_somewhere
from qa.inbox.models import Kind
from qa.inbox.services import COUNTED, count_waiting

_KEPT = "_inbox_counts"  # of a request


def is_for(user: AnyUser) -> bool:
    """Tell whether a person has an inbox: experts and above who may open the admin."""
    if not isinstance(user, User) or not user.is_staff:
        return False
    return has_role_somewhere(user, Role.SME)


def shown(number: int) -> str:
    """Return a count as it is shown; none beyond what is counted."""
    return f"{number}+" if number >= COUNTED else str(number)


def counts(request: HttpRequest) -> Mapping[Kind, int]:
    """Return how many of each kind wait for the request's user, looked up once."""
    if not hasattr(request, _KEPT):
        setattr(request, _KEPT, count_waiting(caller(request)))
    kept: Mapping[Kind, int] = getattr(request, _KEPT)
    return kept


def said_count(request: HttpRequest) -> str:
    """Return how many wait for the request's user; "" for none."""
    if not is_for(request.user):
        return ""
    numbers = counts(request).values()
    is_more = any(number >= COUNTED for number in numbers)
    total = sum(numbers)
    return f"{total}+" if is_more else str(total or "")


def badge(_request: HttpRequest) -> SafeString:
    """Return the admin navigation's place for the count, which comes after the page.

    Counting seven kinds costs a third of an ordinary page's time.
    """
    return format_html(
        '<span data-waiting aria-live="polite" hx-get="{}" hx-trigger="load, every 60s">'
        "</span>",
        reverse("inbox-count"),
    )


def may_open(request: HttpRequest) -> bool:
    return is_for(request.user)
