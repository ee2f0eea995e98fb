"""What became of one's questions: the list, and the mark on every page."""

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.roles import Role, has_role
from qa.gaps.escalation_models import Notice
from qa.gaps.notices import mark_read, shown_answer

from .parts import agents_only, user_of

PAGE_SIZE = 25


@require_safe
@agents_only
def notices(request: HttpRequest) -> HttpResponseBase:
    """List the user's notices, newest first."""
    own = Notice.objects.of(request.user)
    rows = own.select_related("answer", "escalation", "repeat__after")
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "rows": [(notice, shown_answer(notice)) for notice in page],
        "has_unread": own.unread().exists(),
    }
    return render(request, "qa/notices.html", context)


@require_safe
@never_cache
def unread(request: HttpRequest) -> HttpResponseBase:
    """Return how many notices the user has not opened, as part of every page.

    Asked by pages themselves; who was signed out meanwhile is not sent anywhere.
    """
    if not has_role(request.user, Role.AGENT):
        return HttpResponse(status=403)
    count = Notice.objects.of(request.user).unread().count()
    return render(request, "qa/_unread.html", {"unread": count})


@require_POST
@agents_only
def read_all(request: HttpRequest) -> HttpResponseBase:
    """Mark all of the user's notices as read."""
    mark_read(by=user_of(request))
    return redirect("notices")
