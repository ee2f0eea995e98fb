"""The number of waiting items in the navigation of every page."""

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
    """Return whether a person has an inbox: experts and above with admin access."""
    if not isinstance(user, User) or not user.is_staff:
        return False
    return has_role_somewhere(user, Role.SME)


def shown(number: int) -> str:
    """Return a count as it is shown, with a plus from `COUNTED` on."""
    return f"{number}+" if number >= COUNTED else str(number)


def counts(request: HttpRequest) -> Mapping[Kind, int]:
    """Return how many of each kind wait for the request's user, queried once."""
    if not hasattr(request, _KEPT):
        setattr(request, _KEPT, count_waiting(caller(request)))
    kept: Mapping[Kind, int] = getattr(request, _KEPT)
    return kept


def said_count(request: HttpRequest) -> str:
    """Return how many items wait for the request's user, as text; "" for none."""
    if not is_for(request.user):
        return ""
    numbers = counts(request).values()
    is_more = any(number >= COUNTED for number in numbers)
    total = sum(numbers)
    return f"{total}+" if is_more else str(total or "")


def badge(_request: HttpRequest) -> SafeString:
    """Return the admin navigation's placeholder for the count, loaded after the page.

    Counting seven kinds takes a third of an ordinary page's time.
    """
    return format_html(
        '<span data-waiting aria-live="polite" hx-get="{}" hx-trigger="load, every 60s">'
        "</span>",
        reverse("inbox-count"),
    )


def may_open(request: HttpRequest) -> bool:
    return is_for(request.user)
