"""Editing an entry in place: its text, its end of validity and its tags.

The place is the entry's own page, or a part of another page that its Edit link names.
The form belongs to the revision that it was opened with. If somebody has saved a newer
one, both texts are shown and the typed text stays in the form.
"""

import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods

from accounts.exceptions import NescioError
from accounts.ids import number_in
from accounts.roles import caller, is_live
from accounts.undo import offer_undo
from kb.entries.history_admin import Piece, word_difference
from kb.entries.models import Entry, Revision
from kb.entries.values import REASON_LIMIT, EntryChanges, end_of_day
from kb.exceptions import InvalidKnowledgeError, RevisionConflictError
from kb.tags.models import Tag
from kb.upkeep.conflict_resolution import edit_undisputed
from kb.upkeep.undoing import KIND as UNDO
from kb.upkeep.undoing import undoable

from . import parts
from .entry_pages import find_curated, find_entry, show_entry

_PART: Final = re.compile(r"[a-z]+(-[0-9]+)?")
_CHANGED = ("question", "text", "valid_until", "product_line", "line_of_business")


class EntryTextForm(forms.Form):
    """The fields that a curator corrects daily; the admin's form has the rest.

    The entry's fields have no `maxlength`, with which browsers cut off pasted text; the
    service reports what is too long.
    """

    question = forms.CharField(
        required=False,
        help_text="If there is one, the text below is its answer, shown word for word.",
    )
    text = forms.CharField(widget=forms.Textarea(attrs={"rows": 5, "autofocus": True}))
    valid_until = forms.DateField(
        required=False,
        widget=forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"}),
        help_text="Until the end of that day; empty: no end date.",
    )
    product_line = forms.ModelChoiceField(
        Tag.objects.product_lines(), required=False, empty_label="none", label="Product"
    )
    line_of_business = forms.ModelChoiceField(
        Tag.objects.lines_of_business(), required=False, empty_label="none"
    )
    reason = forms.CharField(
        required=False,
        max_length=REASON_LIMIT,
        label="Why (optional)",
        help_text="Kept in the history.",
    )
    revision = forms.IntegerField(widget=forms.HiddenInput)

    def changes(self) -> EntryChanges:
        """Return the new values of the fields that were changed in the form."""
        changes: dict[str, Any] = {
            name: self.cleaned_data[name]
            for name in self.changed_data
            if name in _CHANGED
        }
        if day := changes.get("valid_until"):
            changes["valid_until"] = end_of_day(day)
        return changes  # type: ignore[return-value]  # by the names of the fields


def _values(row: Entry | Revision) -> dict[str, Any]:
    until = row.valid_until
    return {
        "question": row.question,
        "text": row.text,
        "valid_until": timezone.localtime(until).date() if until else None,
        "product_line": row.product_line_id,
        "line_of_business": row.line_of_business_id,
    }


def _form(found: Entry, user: User, data: QueryDict | None = None) -> EntryTextForm:
    """Return the form of an entry; with `data`, of the revision that was edited."""
    row: Entry | Revision = found
    if data is not None:
        number = number_in(data.get("revision", "")) or 0
        rows = Revision.objects.visible_to(user).filter(entry=found)
        row = rows.filter(number=number).first() or found
    initial = _values(row) | {"revision": found.revision_number}
    return EntryTextForm(data, initial=initial, auto_id="entry-%s", label_suffix="")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the form is on another page: the page's URL, and the id of the part."""

    back: str
    part: str

    @property
    def query(self) -> str:
        return "?" + urlencode({"back": self.back, "part": self.part})


def _place(request: HttpRequest) -> _Place | None:
    back, part = request.GET.get("back", ""), request.GET.get("part", "")
    is_ours = back.startswith("/") and url_has_allowed_host_and_scheme(back, None)
    return _Place(back, part) if is_ours and _PART.fullmatch(part) else None


@require_http_methods(["GET", "HEAD", "POST"])
@parts.agents_only
def edit(request: HttpRequest, entry_id: int) -> HttpResponseBase:
    """Show an entry with a form in place of its text, or save the form."""
    found = find_curated(request, entry_id)
    if request.method == "POST":
        return _save(request, found)
    if found.state == Entry.State.RETIRED:
        place = _place(request)
        if place is None:
            return redirect("entry", found.pk)
        messages.error(request, f"Entry {found.pk} is retired; restore it first.")
        return _return(request, found, place)
    return _show(request, found, form=_form(found, caller(request)))


def _show(
    request: HttpRequest, found: Entry, status: int = 200, **said: Any
) -> HttpResponseBase:
    """Return the entry's page with the form; for another page, with HTMX, the form."""
    place = _place(request)
    if place is None or not is_live(request):
        return show_entry(request, found, status=status, place=place, **said)
    context = {"entry": found, "place": place, **said}
    return render(request, "qa/_entry_form.html", context, status=status)


def _return(request: HttpRequest, now: Entry, place: _Place) -> HttpResponseBase:
    """Redirect to the other page; with HTMX, send messages and reload its part."""
    if not is_live(request):
        return redirect(place.back)
    response = render(request, "qa/_entry_saved.html", {"entry": now, "place": place})
    response["HX-Retarget"] = f"#{place.part}"
    response["HX-Reswap"] = "beforebegin"
    return response


def _save(request: HttpRequest, found: Entry) -> HttpResponseBase:
    by = caller(request)
    form = _form(found, by, request.POST)
    if not form.is_valid():
        return _show(request, found, status=422, form=form)
    try:
        _, before = undoable(
            lambda: edit_undisputed(
                entry_id=found.pk,
                by=by,
                expected_revision=form.cleaned_data["revision"],
                reason=form.cleaned_data["reason"],
                **form.changes(),
            ),
            found.pk,
            by=by,
        )
    except RevisionConflictError as refused:
        return _show_both(request, form, found.pk, status=_status(request, refused))
    except InvalidKnowledgeError as refused:
        field = refused.field if refused.field in form.fields else None
        form.add_error(field, str(refused))
        return _show(request, found, status=422, form=form)
    except NescioError as refused:
        form.add_error(None, str(refused))
        return _show(request, found, status=_status(request, refused), form=form)
    now, place = find_entry(request, found.pk), _place(request)
    back = place.back if place else reverse("entry", args=[now.pk])
    if now.revision_number == found.revision_number:
        messages.success(request, "Nothing was changed.")
    else:
        said = _said(found, now)
        offer_undo(request, said, kind=UNDO, before=before, back=back)
    if place:
        return _return(request, now, place)
    if not is_live(request):
        return redirect(back)
    response = show_entry(request, now)
    response["HX-Trigger"] = "inbox-changed"  # the entry may no longer be due
    return response


def _status(request: HttpRequest, refused: NescioError) -> int:
    return 422 if is_live(request) else refused.status  # HTMX shows a 422


def _said(before: Entry, now: Entry) -> str:
    if before.state == Entry.State.VERIFIED != now.state:
        return (
            "Saved, but it is not verified any more: it contradicts a verified entry and "
            "needs review until somebody decides which is right."
        )
    return "Saved."


@dataclass(frozen=True, slots=True)
class _Theirs:
    """What somebody else saved; `question` and `text` mark what the form lacks."""

    newest: Revision | None
    question: tuple[Piece, ...]
    text: tuple[Piece, ...]


def _show_both(
    request: HttpRequest, typed: EntryTextForm, entry_id: int, status: int
) -> HttpResponseBase:
    """Show the typed text beside the newest revision, to be saved over it or not.

    A field that was not changed takes its current value.
    """
    found = find_entry(request, entry_id)
    now = {name: str(value or "") for name, value in _values(found).items()}
    data = request.POST.copy()
    for name in now.keys() - set(typed.changed_data):
        data[name] = now[name]
    data["revision"] = str(found.revision_number)
    visible = Revision.objects.visible_to(request.user).filter(entry=found)
    theirs = _Theirs(
        visible.select_related("author").order_by("-number").first(),
        *(_marked(now[name], str(data.get(name, ""))) for name in ("question", "text")),
    )
    form = _form(found, caller(request), data)
    return _show(request, found, status=status, form=form, theirs=theirs)


def _marked(theirs: str, yours: str) -> tuple[Piece, ...]:
    pieces = word_difference(theirs, yours.replace("\r\n", "\n").strip())
    return tuple(piece for piece in pieces if piece.kind != "new")
