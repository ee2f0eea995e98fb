"""The inbox of experts and curators: listing, assigning and snoozing its items.

Each row links to the page where it is handled; `inbox.js` has the keyboard shortcuts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import wraps
from typing import ParamSpec

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.exceptions import NescioError
from accounts.ids import number_in
from accounts.people import find_person, person_name
from accounts.roles import caller, is_live
from kb.documents.models import KnowledgeBase
from kb.interface.choices import base_choices
from qa.exceptions import InvalidInboxError
from qa.inbox.models import Kind
from qa.inbox.navigation import is_for, said_count, shown
from qa.inbox.services import MAX_LISTED, assign, assignable, read_inbox, snooze
from qa.inbox.waiting import Scope

from . import parts

P = ParamSpec("P")

PAGE_SIZE = 25
_SCOPES = {
    Scope.WAITING: "For me",
    Scope.MINE: "Only mine",
    Scope.OTHERS: "Assigned to others",
    Scope.SNOOZED: "Snoozed",
}
_PERIODS = ((1, "Until tomorrow"), (7, "For a week"), (30, "For a month"))


class InboxForm(forms.Form):
    """The filters of the inbox; an invalid value filters nothing."""

    whose = forms.ChoiceField(
        required=False, choices=[(each.value, label) for each, label in _SCOPES.items()]
    )
    kind = forms.ChoiceField(required=False, choices=Kind.choices)
    base = forms.ModelChoiceField(
        KnowledgeBase.objects.in_use(), required=False, to_field_name="slug"
    )
    page = forms.IntegerField(
        required=False, min_value=1, max_value=MAX_LISTED // PAGE_SIZE
    )


@dataclass(frozen=True, slots=True)
class _Choice:
    scope: Scope
    kind: Kind | None
    base: KnowledgeBase | None
    page: int

    def query(self, **changes: object) -> str:
        """Return the query string of this choice with changes, from page one."""
        base = self.base.slug if self.base else ""
        kept: dict[str, object] = {
            "whose": self.scope.value, "kind": self.kind or "", "base": base,
        }  # fmt: skip
        query = QueryDict(mutable=True)
        for name, value in {**kept, **changes}.items():
            if value and value != Scope.WAITING:
                query[name] = str(value)
        return f"?{query.urlencode()}" if query else "?"


def _chosen(request: HttpRequest) -> _Choice:
    form = InboxForm(request.GET)
    form.is_valid()
    given = form.cleaned_data
    kind = given.get("kind")
    return _Choice(
        Scope(given.get("whose") or Scope.WAITING),
        Kind(kind) if kind else None,
        given.get("base"),
        given.get("page") or 1,
    )


def experts_only(page: parts.Page[P]) -> parts.Page[P]:
    """Let in experts and curators who may open the admin, where items are handled."""

    @parts.agents_only
    @wraps(page)
    def guarded(
        request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponseBase:
        if not is_for(caller(request)):
            msg = (
                "The inbox is for experts and curators who may open the admin. Ask an "
                "administrator for the role sme or curator and for staff status."
            )
            raise PermissionDenied(msg)
        return page(request, *args, **kwargs)

    return guarded


@require_safe
@experts_only
def inbox(request: HttpRequest) -> HttpResponseBase:
    """Show the inbox; with HTMX, only the part that a filter changes."""
    template = "qa/_inbox.html" if is_live(request) else "qa/inbox.html"
    return render(request, template, _context(request))


@require_safe
@never_cache
def count(request: HttpRequest) -> HttpResponseBase:
    """Return how many items wait, polled by every page: no login redirect."""
    if not request.user.is_authenticated or not is_for(caller(request)):
        return HttpResponse(status=403)
    return render(request, "qa/_waiting.html", {"waiting": said_count(request)})


@require_POST
@experts_only
def change(request: HttpRequest) -> HttpResponseBase:
    """Assign or snooze one item; return the updated list, with an undo."""
    posted, user = request.POST, caller(request)
    kind = posted.get("kind", "")
    subject = number_in(posted.get("subject", ""))
    if kind not in Kind.values or subject is None:
        said = f"{kind[:20]} {posted.get('subject', '')[:20]}".strip()
        return HttpResponse(
            f"“{said}” names no item: send kind and subject", status=400
        )
    done, error = None, ""
    try:
        done = _do(posted, Kind(kind), subject, by=user)
    except NescioError as refused:
        error = str(refused)
    if not is_live(request) and not error:
        return redirect(reverse("inbox") + _chosen(request).query())
    context = {**_context(request), "done": done, "error": error}
    status = 422 if error else 200
    page = "qa/_inbox.html" if is_live(request) else "qa/inbox.html"
    response = render(request, page, context, status=status)
    if done:
        response["HX-Trigger"] = "inbox-changed"  # updates the count in the navigation
    return response


@dataclass(frozen=True, slots=True)
class _Done:
    """What was done to an item, and the form values that undo it."""

    said: str
    kind: Kind
    subject: int
    undo: Mapping[str, str]


def _do(posted: QueryDict, kind: Kind, subject: int, *, by: User) -> _Done:
    match posted.get("action", ""):
        case "take":
            to: User | None = by
        case "assign":
            to = _named(posted.get("user", "").strip())
        case "release":
            to = None
        case "snooze":
            until = _day(posted.get("until", ""))
            snooze(kind, subject, until=until, by=by)
            said = f"Snoozed until {until:%Y-%m-%d}."
            return _Done(said, kind, subject, {"action": "wake"})
        case "wake":
            snooze(kind, subject, until=None, by=by)
            return _Done("Back in the inbox.", kind, subject, {})
        case action:
            raise InvalidInboxError(
                f"There is no action {action[:20]!r}; send take, assign, release, "
                "snooze or wake."
            )
    before = assign(kind, subject, to=to, by=by, expected=posted.get("expected"))
    undo = {"action": "release", "expected": to.get_username() if to else ""}
    if before:
        undo |= {"action": "assign", "user": before.get_username()}
    if to is None:
        return _Done("Assigned to nobody.", kind, subject, undo if before else {})
    name = "you" if to == by else person_name(to)
    said = f"Assigned to {name}."
    return _Done(said, kind, subject, undo)


def _named(name: str) -> User:
    user = find_person(name)
    if user is None:
        raise InvalidInboxError(
            f"There is no user {name[:150]!r}; give the name of an active one."
        )
    return user


def _day(text: str) -> datetime:
    """Return the start of a day in the deployment's time zone."""
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise InvalidInboxError(
            f"{text[:20]!r} is not a date; give one such as 2027-03-31."
        ) from error
    return timezone.make_aware(datetime.combine(day, time()))


def _context(request: HttpRequest) -> dict[str, object]:
    user, choice, now = caller(request), _chosen(request), timezone.now()
    page = read_inbox(
        user,
        scope=choice.scope,
        kind=choice.kind,
        base=choice.base,
        page=choice.page,
        size=PAGE_SIZE,
        at=now,
    )
    today = timezone.localdate(now)
    return {
        "rows": page.items,
        "at": now,
        "choice": choice,
        "here": choice.query(page=choice.page if choice.page > 1 else ""),
        "scopes": [
            (label, choice.query(whose=scope), scope == choice.scope)
            for scope, label in _SCOPES.items()
        ],
        "kinds": [
            ("All", "", choice.query(kind=""), choice.kind is None),
            *(
                (
                    kind.label,
                    shown(number),
                    choice.query(kind=kind),
                    kind == choice.kind,
                )
                for kind, number in page.counts.items()
            ),
        ],
        "bases": base_choices(user, choice.base, lambda slug: choice.query(base=slug)),
        "newer": choice.query(page=choice.page - 1) if choice.page > 1 else "",
        "older": choice.query(page=choice.page + 1) if page.has_more else "",
        "people": assignable(),
        "periods": [(label, today + timedelta(days=days)) for days, label in _PERIODS],
        "first_day": today + timedelta(days=1),
        "is_snoozed": choice.scope is Scope.SNOOZED,
    }
