"""Actions on many entries of the list: a confirmation page, then the bulk services."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from accounts.exceptions import NescioError
from accounts.roles import Role, caller, has_role
from kb.audiences.models import Audience
from kb.conflicts.models import Conflict
from kb.entries.bulk import (
    BATCH,
    MOST,
    Action,
    BulkChange,
    BulkReport,
    change_visible,
    check_change,
    enqueue_change,
)
from kb.entries.models import Entry
from kb.entries.values import REASON_LIMIT
from kb.tags.models import Tag

_SHOWN_ENTRIES = 5
_SHOWN_FAILURES = 5


@dataclass(frozen=True, slots=True)
class _Words:
    """How an action is called: in the menu, as what happens, as what happened."""

    menu: str
    will: str
    done: str


_WORDS = {
    Action.VERIFY: _Words(
        "Verify: right as it stands",
        "You vouch for each as it stands: its confidence becomes 1, its review interval "
        "begins anew.",
        "verified",
    ),
    Action.MARK: _Words(
        "Mark for review",
        "Each needs a review; a verified one is no longer certain.",
        "marked for review",
    ),
    Action.RETIRE: _Words(
        "Retire: out of every answer",
        "No answer uses them any more. They can be restored.",
        "retired",
    ),
    Action.RESTORE: _Words(
        "Restore what was retired", "Each stands again as it did before.", "restored"
    ),
    Action.OWNER: _Words(
        "Change the owner", "The owner is reminded of what is due.", "handed over"
    ),
    Action.AUDIENCE: _Words(
        "Change the audience",
        "From now on the members of this audience see them, and nobody else.",
        "given another audience",
    ),
    Action.INTERVAL: _Words(
        "Change the review interval",
        "Days from a verification to the next.",
        "given another interval",
    ),
    Action.PRODUCT_LINE: _Words(
        "Change the product line",
        "What is asked of them goes to its experts for review.",
        "given another product line",
    ),
    Action.LINE_OF_BUSINESS: _Words(
        "Change the line of business",
        "What is asked of them goes to its experts for review.",
        "given another line of business",
    ),
}


class BulkForm(forms.Form):
    """Why, and where an action takes one the new value."""

    value: Any = None
    reason = forms.CharField(
        max_length=REASON_LIMIT,
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="Kept with the revision of each entry.",
    )

    def __init__(self, action: Action, user: User, data: Any = None) -> None:  # noqa: ANN401  # Django's
        super().__init__(data)
        field = _value_field(action, user)
        if field is not None:
            self.fields = {"value": field, **self.fields}

    def change(self, action: Action) -> BulkChange:
        value = self.cleaned_data.get("value")
        key = getattr(value, "pk", value)
        return BulkChange(action, key, self.cleaned_data["reason"])


def _value_field(action: Action, user: User) -> forms.Field | None:
    if action == Action.OWNER:
        return forms.ModelChoiceField(
            User.objects.filter(is_active=True).order_by("username"),
            required=False,
            label="Owner",
            empty_label="nobody",
            widget=UnfoldAdminSelectWidget,
        )
    if action == Action.AUDIENCE:
        return forms.ModelChoiceField(
            Audience.objects.visible_to(user),
            label="Audience",
            widget=UnfoldAdminSelectWidget,
        )
    if action in (Action.PRODUCT_LINE, Action.LINE_OF_BUSINESS):
        return forms.ModelChoiceField(
            Tag.objects.filter(facet=action.value),
            required=False,
            label=Tag.Facet(action.value).label.capitalize(),
            empty_label="none",
            widget=UnfoldAdminSelectWidget,
        )
    if action == Action.INTERVAL:
        return forms.IntegerField(
            required=False,
            label="Review interval in days",
            widget=UnfoldAdminIntegerFieldWidget,
            help_text="Empty: that of the knowledge base.",
        )
    return None


def _act(
    model_admin: Any,  # noqa: ANN401  # unfold ships no types
    request: HttpRequest,
    chosen: QuerySet[Entry],
    action: Action,
) -> HttpResponse | None:
    """Ask, or once it is confirmed change the entries: few at once, many as a job."""
    by = caller(request)
    is_confirmed = request.method == "POST" and "confirm" in request.POST
    form = BulkForm(action, by, request.POST if is_confirmed else None)
    if not is_confirmed or not form.is_valid():
        return _ask(model_admin, request, chosen, action, form)
    change = form.change(action)
    ids = list(chosen.order_by().values_list("pk", flat=True)[: MOST + 1])
    try:
        if len(ids) > BATCH:
            check_change(change, may_verify=has_role(by, Role.CURATOR))
            job = enqueue_change(ids, change, by=by)
            _tell_of_job(model_admin, request, len(ids), str(job.pk))
        else:
            _tell(model_admin, request, action, change_visible(ids, change, by=by))
            if action == Action.VERIFY:
                _tell_conflicts(model_admin, request, ids)
    except NescioError as error:
        form.add_error(None, str(error))
        return _ask(model_admin, request, chosen, action, form)
    return None


def _ask(
    model_admin: Any,  # noqa: ANN401  # unfold ships no types
    request: HttpRequest,
    chosen: QuerySet[Entry],
    action: Action,
    form: BulkForm,
) -> HttpResponse:
    words = _WORDS[action]
    context = {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.model._meta,
        "title": words.menu.partition(":")[0],
        "will": words.will,
        "action": action.value,
        "form": form,
        "count": chosen.order_by().count(),
        "sample": chosen[:_SHOWN_ENTRIES],
        "in_background": BATCH,
        "in_conflict": (
            _in_conflict(request, chosen) if action == Action.VERIFY else 0
        ),
        "conflicts": _conflicts_address(),
        "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
        "across": request.POST.get("select_across", "0"),
        "back": request.get_full_path(),
    }
    return TemplateResponse(request, "admin/kb/entry/bulk.html", context)


def _tell(
    model_admin: Any,  # noqa: ANN401  # unfold ships no types
    request: HttpRequest,
    action: Action,
    report: BulkReport,
) -> None:
    for failure in report.failures[:_SHOWN_FAILURES]:
        model_admin.message_user(request, failure.message, level=messages.ERROR)
    rest = len(report.failures) - _SHOWN_FAILURES
    if rest > 0:
        model_admin.message_user(
            request, f"{rest} more could not be changed.", level=messages.ERROR
        )
    if report.unchanged:
        model_admin.message_user(
            request, f"{_entries(report.unchanged)} stood so already."
        )
    if report.changed:
        said = f"{_entries(report.changed)} {_WORDS[action].done}."
        model_admin.message_user(request, said, level=messages.SUCCESS)


def _in_conflict(request: HttpRequest, entries: QuerySet[Entry]) -> int:
    """Count the entries that are in an open conflict which the user may see."""
    conflicts = Conflict.objects.visible_to(request.user).open()
    return conflicts.entries_among(entries).order_by().count()


def _conflicts_address() -> str:
    return reverse("admin:kb_conflict_changelist") + "?state__exact=open"


def _tell_conflicts(
    model_admin: Any,  # noqa: ANN401  # unfold ships no types
    request: HttpRequest,
    ids: Collection[int],
) -> None:
    """Say how many verified entries another contradicts or repeats."""
    verified = Entry.objects.filter(pk__in=ids, state=Entry.State.VERIFIED)
    count = _in_conflict(request, verified)
    if count:
        said = format_html(
            '{} of what you verified {} in an open conflict: <a class="underline" '
            'href="{}">compare</a>.',
            _entries(count),
            "is" if count == 1 else "are",
            _conflicts_address(),
        )
        model_admin.message_user(request, said, level=messages.WARNING)


def _tell_of_job(
    model_admin: Any,  # noqa: ANN401  # unfold ships no types
    request: HttpRequest,
    count: int,
    job_id: str,
) -> None:
    try:
        address = reverse("admin:jobs_job_change", args=[job_id])
    except NoReverseMatch:
        address = ""
    said = format_html(
        '{} are changed in the background; <a class="underline" href="{}">the job</a> '
        "tells how many were and which could not be.",
        _entries(count),
        address,
    )
    model_admin.message_user(request, said, level=messages.SUCCESS)


def _entries(count: int) -> str:
    return f"{count} entry" if count == 1 else f"{count} entries"


def _action_of(action: Action) -> Callable[..., HttpResponse | None]:
    """Return the function that Django's list calls for a chosen action."""
    permission = "verify" if action == Action.VERIFY else "change"

    @admin.action(description=_WORDS[action].menu, permissions=[permission])
    def act(
        model_admin: Any,  # noqa: ANN401  # unfold ships no types
        request: HttpRequest,
        chosen: QuerySet[Entry],
    ) -> HttpResponse | None:
        return _act(model_admin, request, chosen, action)

    act.__name__ = action.value
    return act


ACTIONS = [_action_of(action) for action in Action]
