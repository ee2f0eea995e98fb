"""Who may open the pages, and which answers they may see there."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec
from uuid import UUID

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.cache import never_cache

from accounts.roles import Role, has_role
from qa.models import Answer

P = ParamSpec("P")
Page = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def is_live(request: HttpRequest) -> bool:
    """Tell whether HTMX asks for a part of a page."""
    return request.headers.get("HX-Request") == "true"


def agents_only(page: Page[P]) -> Page[P]:
    """Let agents and above in, send the anonymous to sign in, and keep it out of caches."""

    @never_cache
    @wraps(page)
    def guarded(
        request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return _to_login(request)
        if not has_role(request.user, Role.AGENT):
            msg = (
                f"The account {request.user.get_username()} has no role yet. "
                "Ask an administrator to give it the role agent."
            )
            raise PermissionDenied(msg)
        return page(request, *args, **kwargs)

    return guarded


def user_of(request: HttpRequest) -> User:
    """Return the signed-in user of a guarded page."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def find_answer(request: HttpRequest, answer_id: UUID) -> Answer:
    """Return an answer of the user, or of anybody for who reviews answers.

    Raises:
        Http404: There is none, or it is not theirs to see; the two look the same.
    """
    visible = Answer.objects.visible_to(request.user)
    rows = visible.select_related("asker", "knowledge_base")
    found = rows.filter(pk=answer_id).first()
    if found is None:
        msg = "This answer does not exist, or somebody else asked for it."
        raise Http404(msg)
    return found


def _to_login(request: HttpRequest) -> HttpResponse:
    if not is_live(request):
        return redirect_to_login(request.get_full_path())
    # A redirect would put the sign-in page into the middle of this one.
    response = HttpResponse(status=401)
    response["HX-Redirect"] = redirect_to_login("/").url
    return response
