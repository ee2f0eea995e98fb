"""Bulk actions on the list of entries: a confirmation page, then the bulk services."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, NamedTuple

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.text import Truncator

from accounts.admin_parts import style
from accounts.base_admin import OPEN, BaseAdmin
from accounts.exceptions import NescioError
from accounts.people import by_name
from accounts.roles import Role, caller, has_role_somewhere
from accounts.undo import offer_undo
from kb.audiences.models import Audience
from kb.conflicts.models import Conflict, ConflictQuerySet
from kb.entries import bulk
from kb.entries.models import Entry
from kb.entries.values import REASON_LIMIT
from kb.tags.models import Tag

_ON_A_PAGE = 25
_SHOWN_FAILURES = 5
_SHOWN_LETTERS = 60  # characters of an entry in a message


class _Words(NamedTuple):
    menu: str
    will: str
    done: str


_TO_EXPERTS = "Questions about them go to its experts for review."


_WORDS = {
    bulk.Action.VERIFY: _Words(
        "Verify",
        "You verify each as it is: its confidence becomes 1 and its review interval "
        "starts again.",
        "verified",
    ),
    bulk.Action.MARK: _Words(
        "Mark for review",
        "Each needs a review; a verified one loses its verification.",
        "marked for review",
    ),
    bulk.Action.RETIRE: _Words(
        "Retire", "Answers no longer use them. They can be restored.", "retired"
    ),
    bulk.Action.RESTORE: _Words(
        "Restore from retirement",
        "Each returns to the state that it had before.",
        "restored",
    ),
    bulk.Action.OWNER: _Words(
        "Change the owner", "The owner is reminded of what is due.", "changed"
    ),
    bulk.Action.AUDIENCE: _Words(
        "Change the audience",
        "From now on only the members of this audience see them.",
        "changed",
    ),
    bulk.Action.INTERVAL: _Words(
        "Change the review interval", "Days between verifications.", "changed"
    ),
    bulk.Action.PRODUCT_LINE: _Words("Change the product line", _TO_EXPERTS, "changed"),
    bulk.Action.LINE_OF_BUSINESS: _Words(
        "Change the line of business", _TO_EXPERTS, "changed"
    ),
}


class BulkForm(forms.Form):
    value: Any = None
    reason = forms.CharField(
        max_length=REASON_LIMIT,
        required=False,
        help_text="Kept with the revision of each entry.",
    )

    def __init__(
        self, action: bulk.Action, user: User, data: QueryDict, *, is_confirmed: bool
    ) -> None:
        # Input is kept while the user pages through the chosen entries.
        super().__init__(data if is_confirmed else None, initial=data.dict())
        field = _value_field(action, user)
        if field is not None:
            self.fields = {"value": field, **self.fields}
        style(self)

    def change(self, action: bulk.Action) -> bulk.BulkChange:
        value = self.cleaned_data.get("value")
        key = getattr(value, "pk", value)
        return bulk.BulkChange(action, key, self.cleaned_data["reason"])


def _value_field(action: bulk.Action, user: User) -> forms.Field | None:
    if action == bulk.Action.OWNER:
        people = by_name(User.objects.filter(is_active=True))
        return _choice(people, "Owner", empty="nobody")
    if action == bulk.Action.AUDIENCE:
        return _choice(Audience.objects.visible_to(user), "Audience")
    if action in (bulk.Action.PRODUCT_LINE, bulk.Action.LINE_OF_BUSINESS):
        label = Tag.Facet(action.value).label.capitalize()
        return _choice(Tag.objects.filter(facet=action.value), label, empty="none")
    if action == bulk.Action.INTERVAL:
        return forms.IntegerField(
            required=False,
            label="Review interval in days",
            help_text="Empty: the knowledge base's interval.",
        )
    return None


def _choice(rows: QuerySet[Any], label: str, *, empty: str = "") -> forms.Field:
    return forms.ModelChoiceField(
        rows, required=not empty, label=label, empty_label=empty or "---------"
    )


class BulkActionsAdmin(BaseAdmin):
    # Set by a subclass: undoing belongs to a higher layer.
    undo_kind: ClassVar[str]
    undoable: ClassVar[Callable[..., tuple[bulk.BulkReport, Mapping[str, Any]]]]

    def change_chosen(
        self, request: HttpRequest, chosen: QuerySet[Entry], action: bulk.Action
    ) -> HttpResponse | None:
        """Ask for confirmation, then change the entries: few at once, many as a job."""
        by = caller(request)
        is_confirmed = request.method == "POST" and "confirm" in request.POST
        form = BulkForm(action, by, request.POST, is_confirmed=is_confirmed)
        if not is_confirmed or not form.is_valid():
            return self._ask(request, chosen, action, form)
        change = form.change(action)
        ids = list(
            chosen.order_by().values_list("pk", flat=True)[: bulk.MAX_ENTRIES + 1]
        )
        try:
            if len(ids) > bulk.BATCH:
                bulk.check_change(
                    change, may_verify=has_role_somewhere(by, Role.CURATOR)
                )
                job = bulk.enqueue_change(ids, change, by=by)
                self._report_job(request, len(ids), str(job.pk))
            else:
                report, noted = self.undoable(
                    lambda: bulk.change_visible(ids, change, by=by), *ids, by=by
                )
                left_out = self._left_out(request, action, report)
                self._report(request, action, report, left_out, noted)
        except NescioError as error:
            form.add_error(None, str(error))
            return self._ask(request, chosen, action, form)
        return None

    def _ask(
        self,
        request: HttpRequest,
        chosen: QuerySet[Entry],
        action: bulk.Action,
        form: BulkForm,
    ) -> HttpResponse:
        words = _WORDS[action]
        page = Paginator(chosen, _ON_A_PAGE).get_page(request.POST.get("page"))
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": words.menu,
            "will": words.will,
            "action": action.value,
            "form": form,
            "page": page,
            "in_background": bulk.BATCH,
            "contradicted": (
                _contradicted(request, chosen).count()
                if action == bulk.Action.VERIFY
                else 0
            ),
            "conflicts": _conflicts_address(),
            "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
            "across": request.POST.get("select_across", "0"),
            "back": request.get_full_path(),
        }
        return TemplateResponse(request, "admin/kb/entry/bulk.html", context)

    def _report(
        self,
        request: HttpRequest,
        action: bulk.Action,
        report: bulk.BulkReport,
        left_out: Collection[int],
        noted: Mapping[str, Any],
    ) -> None:
        failures = [each for each in report.failures if each.entry_id not in left_out]
        for failure in failures[:_SHOWN_FAILURES]:
            self.message_user(request, failure.message, level=messages.ERROR)
        rest = len(failures) - _SHOWN_FAILURES
        if rest > 0:
            said = f"{rest} more could not be changed."
            self.message_user(request, said, level=messages.ERROR)
        if report.unchanged:
            said = f"{_entries(report.unchanged)} unchanged: nothing to do."
            self.message_user(request, said)
        if report.changed:
            offer_undo(
                request,
                f"{_entries(report.changed)} {_WORDS[action].done}.",
                kind=self.undo_kind,
                before={"rows": [noted]},
                back=request.get_full_path(),
            )

    def _left_out(
        self, request: HttpRequest, action: bulk.Action, report: bulk.BulkReport
    ) -> set[int]:
        """Report contradicted entries, which were not verified; return their ids."""
        if action != bulk.Action.VERIFY or not report.failures:
            return set()
        ids = [failure.entry_id for failure in report.failures]
        failed = Entry.objects.visible_to(request.user).filter(pk__in=ids)
        left_out = {entry.pk: entry for entry in _contradicted(request, failed)}
        if not left_out:
            return set()
        rows = _contradictions(request).of_entry(*left_out).order_by("pk")
        links = format_html_join(
            ", ",
            '<a class="underline" href="{}">“{}” and “{}”</a>',
            (
                (
                    reverse("admin:kb_conflict_change", args=[row.pk]),
                    Truncator(row.first.said).chars(_SHOWN_LETTERS),
                    Truncator(row.second.said).chars(_SHOWN_LETTERS),
                )
                for row in rows.select_related("first", "second")[:_SHOWN_FAILURES]
            ),
        )
        said = format_html(
            '{} not verified: decide first which is right. {} (<a class="underline" '
            'href="{}">all open conflicts</a>)',
            _entries(len(left_out)),
            links,
            _conflicts_address(),
        )
        self.message_user(request, said, level=messages.WARNING)
        return set(left_out)

    def _report_job(self, request: HttpRequest, count: int, job_id: str) -> None:
        said = format_html(
            '{} are changed in the background; <a class="underline" href="{}">the job</a> '
            "shows the progress and which could not be changed.",
            _entries(count),
            reverse("admin:jobs_job_change", args=[job_id]),
        )
        self.message_user(request, said, level=messages.SUCCESS)


def _contradictions(request: HttpRequest) -> ConflictQuerySet:
    return Conflict.objects.visible_to(request.user).open().contradictions()


def _contradicted(request: HttpRequest, entries: QuerySet[Entry]) -> QuerySet[Entry]:
    """Return those of the entries that have an open contradiction."""
    return _contradictions(request).entries_among(entries).order_by()


def _conflicts_address() -> str:
    return f"{reverse('admin:kb_conflict_changelist')}?{OPEN}"


def _entries(count: int) -> str:
    return f"{count} entry" if count == 1 else f"{count} entries"


def _list_action(action: bulk.Action) -> Callable[..., HttpResponse | None]:
    permission = "verify" if action == bulk.Action.VERIFY else "change"

    @admin.action(description=_WORDS[action].menu, permissions=[permission])
    def act(
        model_admin: BulkActionsAdmin, request: HttpRequest, chosen: QuerySet[Entry]
    ) -> HttpResponse | None:
        return model_admin.change_chosen(request, chosen, action)

    act.__name__ = action.value
    return act


ACTIONS = [_list_action(action) for action in bulk.Action]
