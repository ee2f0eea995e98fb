from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.text import Truncator

from accounts.admin_parts import FixedRowsAdmin, confirmed
from accounts.base_admin import (
    OPEN_OR_ALL,
    OpenFirstAdmin,
    action,
    badge,
    column,
    holders_of,
)
from accounts.exceptions import NescioError
from accounts.ids import number_in
from accounts.roles import Role, caller
from accounts.undo import offer_undo
from jobs.models import Job
from kb.conflicts.background import enqueue_comparison
from kb.conflicts.models import Conflict
from kb.entries.models import Entry
from kb.interface.admin import InBaseAdmin
from kb.upkeep.conflict_resolution import resolve_conflict
from kb.upkeep.undoing import KIND as UNDO
from kb.upkeep.undoing import undoable

_KINDS = {Conflict.Kind.DUPLICATE: "info", Conflict.Kind.CONTRADICTION: "danger"}
_STATES = {
    Conflict.State.OPEN: "warning",
    Conflict.State.MERGED: "success",
    Conflict.State.KEPT: "success",
    Conflict.State.OVERRIDDEN: "success",
    Conflict.State.OUTDATED: "info",
}
_SHOWN = 90  # characters of an entry in the list


@dataclass(frozen=True, slots=True)
class MarkedText:
    text: str
    clashes: bool


@dataclass(frozen=True, slots=True)
class ConflictSide:
    label: str
    entry: Entry
    revision: int
    pieces: tuple[MarkedText, ...]


@admin.register(Conflict)
class ConflictAdmin(InBaseAdmin, OpenFirstAdmin, FixedRowsAdmin):
    when_empty = "Entries that repeat or contradict each other are listed here once they are compared."
    list_display: ClassVar = [
        "shown_kind", "one", "other", "shown_probability", "shown_state", "found_at",
    ]  # fmt: skip
    list_display_links = ("shown_kind", "one", "other")
    list_filter: ClassVar = [OPEN_OR_ALL, "kind"]
    list_select_related: ClassVar = ["first", "second"]
    actions_list: ClassVar = ["check_now"]
    has_check_permission = holders_of(Role.CURATOR)
    shown_kind = badge("kind", _KINDS)
    shown_state = badge("state", _STATES)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conflict]:
        return (
            Conflict.objects.visible_to(request.user)
            .select_related("first", "second")
            .defer("first__search_vector", "second__search_vector")
        )

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        conflict = self.found(request, object_id)
        if not self.has_view_permission(request, conflict):
            raise Http404
        may_resolve = self.may_touch(request, conflict)
        error = ""
        if request.method == "POST" and may_resolve:
            try:
                self._resolve(request, conflict)
            except NescioError as refused:
                error = str(refused)
            else:
                return HttpResponseRedirect(reverse("admin:kb_conflict_changelist"))
        context = {
            **self.admin_site.each_context(request),
            "opts": self.model._meta,
            "title": f"{conflict.get_kind_display().capitalize()} of two entries",
            "conflict": conflict,
            "sides": _sides(conflict),
            "reasons": list(dict.fromkeys(r["why"] for r in conflict.reasons)),
            "may_edit": may_resolve,
            "may_resolve": may_resolve and conflict.state == Conflict.State.OPEN,
            "error": error,
            "typed": request.POST.get("reason", ""),
            "wording": request.POST.get("text", ""),
        }
        return TemplateResponse(
            request,
            "admin/kb/conflict/resolve.html",
            context,
            status=400 if error else 200,
        )

    def base_of(self, row: Conflict) -> int:
        return row.first.knowledge_base_id

    @action(description="Check now", icon="compare_arrows", permissions=["check"])
    @confirmed("Compare all entries that changed since the last check?")
    def check_now(self, request: HttpRequest) -> HttpResponse:
        job = enqueue_comparison(by=caller(request))
        self.message_user(request, being_compared(request, job), messages.SUCCESS)
        return redirect("admin:kb_conflict_changelist")

    def _resolve(self, request: HttpRequest, conflict: Conflict) -> None:
        # "merge 12": the action of the button that was pressed and the entry to keep.
        action, _, keep = request.POST.get("resolution", "").partition(" ")
        by = caller(request)
        resolved, before = undoable(
            lambda: resolve_conflict(
                conflict_id=conflict.pk,
                action=action,
                keep=number_in(keep),
                by=by,
                reason=request.POST.get("reason", ""),
                text=request.POST.get("text", "") if action == "merge" else "",
            ),
            conflict.first_id,
            conflict.second_id,
            by=by,
        )
        offer_undo(
            request,
            f"Conflict {conflict.pk}: {resolved.get_state_display()}.",
            kind=UNDO,
            before=before,
            back=reverse("admin:kb_conflict_change", args=[conflict.pk]),
        )

    one = column("one entry", lambda row: Truncator(row.first.said).chars(_SHOWN))
    other = column("the other", lambda row: Truncator(row.second.said).chars(_SHOWN))

    @admin.display(description="probability", ordering="score")
    def shown_probability(self, conflict: Conflict) -> str:
        return f"{conflict.score:.0%}"


def being_compared(request: HttpRequest, job: Job) -> str:
    """Return a message about a comparing job, with a link if the user may see it."""
    begun = "The comparison has begun; what it finds is listed under Conflicts."
    if not Job.objects.visible_to(request.user).filter(pk=job.pk).exists():
        return begun
    address = reverse("admin:jobs_job_change", args=[job.pk])
    return format_html(
        '{} <a class="underline" href="{}">Show its progress</a>.', begun, address
    )


def marked(
    text: str, reasons: Sequence[Mapping[str, Any]], side: str
) -> tuple[MarkedText, ...]:
    """Split a text at the places that clash; overlapping places are merged."""
    places = sorted(
        (place["start"], place["end"])
        for reason in reasons
        if (place := reason.get(side)) is not None
    )
    pieces: list[MarkedText] = []
    at = 0
    for start, end in places:
        if end <= at or end > len(text):
            continue
        pieces.append(MarkedText(text[at : max(at, start)], False))
        pieces.append(MarkedText(text[max(at, start) : end], True))
        at = end
    pieces.append(MarkedText(text[at:], False))
    return tuple(piece for piece in pieces if piece.text)


def _sides(conflict: Conflict) -> tuple[ConflictSide, ...]:
    rows = Entry.objects.select_related(
        "document", "section", "audience", "owner", "verified_by"
    ).defer("search_vector")
    found = rows.in_bulk([conflict.first_id, conflict.second_id])
    return tuple(
        ConflictSide(
            label,
            found[entry_id],
            revision,
            marked(found[entry_id].text, conflict.reasons, side),
        )
        for label, side, entry_id, revision in (
            ("A", "first", conflict.first_id, conflict.first_revision),
            ("B", "second", conflict.second_id, conflict.second_revision),
        )
    )
