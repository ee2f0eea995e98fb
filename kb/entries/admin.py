from datetime import datetime
from functools import partial
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import Case, DateTimeField, QuerySet, When
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.text import Truncator

from accounts.admin_parts import EstimatingPaginator, confirmed
from accounts.base_admin import action, badge, column, display, holders_somewhere
from accounts.people import person_name
from accounts.roles import Role, caller
from kb.archive.exports import csv_response
from kb.archive.pages import export_file, exports_page
from kb.conflicts.admin import being_compared
from kb.conflicts.background import enqueue_entries
from kb.documents.models import check_writable
from kb.entries.finding import related_to
from kb.entries.models import Entry, EntryQuerySet
from kb.entries.states import erase_entry
from kb.entries.values import EDITABLE
from kb.exceptions import EmbedderUnavailableError
from kb.interface.admin import InBaseAdmin, ServiceAdmin
from kb.upkeep.conflict_resolution import resolve_written
from kb.upkeep.pages import due_page
from kb.upkeep.undoing import EACH as UNDO_EACH
from kb.upkeep.undoing import undoable_each

from . import filters
from .bulk_actions import ACTIONS, BulkActionsAdmin
from .forms import EntryForm, ValidityField
from .history_admin import HistoryPages, RevisionInline
from .wordings import Wording
from .wordings_admin import WordingInline, save_wordings

_COLOURS = {
    Entry.State.DRAFT: "info",
    Entry.State.PROPOSED: "warning",
    Entry.State.IN_REVIEW: "info",
    Entry.State.VERIFIED: "success",
    Entry.State.NEEDS_REVIEW: "warning",
    Entry.State.RETIRED: "danger",
}
_ORIGIN_COLOURS = {
    Entry.Origin.MANUAL: "info",
    Entry.Origin.IMPORTED: "info",
    Entry.Origin.ENRICHED: "warning",
    Entry.Origin.REVIEW: "success",
}


_SAID = ("question", "text")
_PLACE = ("document", "section", "audience", "product_line", "line_of_business")
_OTHERS = [name for name in EDITABLE if name not in _SAID + _PLACE]


@admin.register(Entry)
class EntryAdmin(InBaseAdmin, BulkActionsAdmin, HistoryPages, ServiceAdmin):
    form = EntryForm
    undo_kind = UNDO_EACH
    undoable = staticmethod(undoable_each)
    formfield_overrides: ClassVar = {DateTimeField: {"form_class": ValidityField}}
    inlines = [WordingInline, RevisionInline]
    list_display = [
        "shown_said", "shown_state", "shown_origin", "verification", "review",
        "knowledge_base", "audience", "uses_count", "changed_on",
    ]  # fmt: skip
    list_filter = [
        "state", filters.DueListFilter, filters.OwnerListFilter, filters.AudienceListFilter, filters.ExpiryListFilter,
        "origin", "product_line", "line_of_business", "knowledge_base",
    ]  # fmt: skip
    list_select_related = ["knowledge_base", "audience", "verified_by", "upkeep"]
    paginator = EstimatingPaginator
    ordering = ["-updated_at", "-pk"]
    search_fields = ["text"]
    search_help_text = 'Words of question and text, or their beginnings; "..." for a phrase, -word to exclude it.'
    autocomplete_fields = ["document"]
    actions = [*ACTIONS, "download_table"]
    actions_list = ["open_exports"]
    actions_detail = ["check_conflicts"]
    readonly_fields = [
        "verified_by", "verified_at", "created_at", "updated_at", "is_compared",
    ]  # fmt: skip
    fixed_fields = ["knowledge_base", "origin"]
    has_verify_permission = holders_somewhere(Role.CURATOR)
    has_export_permission = holders_somewhere(Role.CURATOR)
    shown_state = badge("state", _COLOURS)
    fieldsets = [
        (None, {"fields": [*_SAID, "state", "confidence", "reason"]}),
        ("Place", {"fields": ["knowledge_base", *_PLACE]}),
        ("Validity", {"fields": [*_OTHERS, "origin"]}),
        ("Verification", {"fields": [*readonly_fields, "revision"]}),
    ]

    def get_fieldsets(self, request: HttpRequest, obj: Entry | None = None) -> Any:
        """Omit from a new entry the fields that only a saved one has."""
        sections = super().get_fieldsets(request, obj)
        return sections if obj else sections[:-1]

    def get_inlines(self, request: HttpRequest, obj: Entry | None) -> Any:
        return super().get_inlines(request, obj) if obj else []

    def get_queryset(self, request: HttpRequest) -> QuerySet[Entry]:
        return (
            Entry.objects.visible_to(request.user)
            .filter(self.rows_of(request))
            .filter(upkeep__isnull=False)  # every entry has one; lets its indexes sort
            .defer("search_vector")
            .order_by(*self.ordering)
        )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Entry], search_term: str
    ) -> tuple[QuerySet[Entry], bool]:
        words = search_term.replace("\0", " ").strip()
        if not words or not isinstance(queryset, EntryQuerySet):
            return queryset, False
        said = queryset.saying(words, or_beginning=True)
        place = request.resolver_match
        is_list = place is not None and place.url_name == "kb_entry_changelist"
        if not is_list or said.exists() or not any(map(str.isalnum, words)):
            return said, False
        try:
            related = related_to(words, queryset)
        except EmbedderUnavailableError:  # the embedder logs why
            return said, False
        if related and request.method == "GET":
            shown = Truncator(words).chars(60)
            note = f"No entry in this list has the words “{shown}”; these are close in meaning."
            self.message_user(request, note)
        places = [When(pk=key, then=number) for number, key in enumerate(related)]
        nearest_first = queryset.filter(pk__in=related).order_by(Case(*places))
        return nearest_first if related else said, False

    def get_urls(self) -> list[URLPattern]:
        revision = "<int:entry_id>/revisions/<int:number>/restore"
        own = {
            "due": (partial(due_page, self), "due"),
            "<int:entry_id>/compare": (self.compare, "compare"),
            revision: (self.restore_revision, "restore_revision"),
            "exports/": (partial(exports_page, self), "exports"),
            "exports/<uuid:job_id>/file": (export_file, "export_file"),
        }
        wrap = self.admin_site.admin_view
        return [
            *(
                path(route, wrap(view), name=f"kb_entry_{name}")
                for route, (view, name) in own.items()
            ),
            *super().get_urls(),
        ]

    def save_model(
        self, request: HttpRequest, obj: Entry, form: EntryForm, change: bool
    ) -> None:
        super().save_model(request, obj, form, change)
        written = obj.state
        conflicts = resolve_written(obj.pk, by=caller(request))
        obj.refresh_from_db(fields=["state"])
        if obj.state != written:
            said = (
                f"The entry is saved, but it is not {written}: it contradicts a verified one "
                "and needs review until somebody decides which is right."
            )
            self.message_user(request, said, level=messages.WARNING)
        for conflict in conflicts:
            address = reverse("admin:kb_conflict_change", args=[conflict.pk])
            self.message_user(
                request,
                format_html(
                    '{} of entries {} and {}: <a class="underline" href="{}">compare</a>.',
                    conflict.get_kind_display().capitalize(),
                    conflict.first_id,
                    conflict.second_id,
                    address,
                ),
                level=messages.WARNING,
            )

    def save_formset(
        self, request: HttpRequest, form: EntryForm, formset: Any, change: bool
    ) -> None:
        if formset.model is Wording:
            save_wordings(request, form.instance, formset)
        else:
            super().save_formset(request, form, formset, change)

    def delete_model(self, request: HttpRequest, obj: Entry) -> None:
        erase_entry(entry_id=obj.pk)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Entry]) -> None:
        for entry_id in list(queryset.values_list("pk", flat=True)):
            erase_entry(entry_id=entry_id)

    shown_said = column("entry", lambda entry: entry.said, ordering="text")

    @display(description="origin", ordering="origin", label=_ORIGIN_COLOURS)
    def shown_origin(self, entry: Entry) -> tuple[str, str]:
        return entry.origin, entry.origin

    @display(
        description="review",
        ordering="upkeep__due_at",
        label={"expired": "danger", "due": "danger", "later": "info"},
    )
    def review(self, entry: Entry) -> tuple[str, str] | None:
        """Show when a review is due, as a badge if it is or the entry has expired."""
        until = entry.valid_until
        if until is not None and until <= timezone.now():
            return "expired", f"expired {_day(until)}"
        due_at = entry.upkeep.due_at
        if due_at is None:
            return None
        day = _day(due_at)
        return ("due", f"due {day}") if due_at <= timezone.now() else ("later", day)

    @admin.display(description="verified", ordering="verified_at")
    def verification(self, entry: Entry) -> str | None:
        if entry.verified_by is None or entry.verified_at is None:
            return None
        by = person_name(entry.verified_by)
        return format_html("{}, {}", by, _unbroken(_day(entry.verified_at)))

    @admin.display(description="used", ordering="upkeep__uses")
    def uses_count(self, entry: Entry) -> str:
        upkeep = entry.upkeep
        counts = {"up": upkeep.up, "down": upkeep.down}
        votes = [f"{count} {name}" for name, count in counts.items() if count]
        return ", ".join([f"{upkeep.uses:,}", *votes])

    @admin.display(description="changed", ordering="updated_at")
    def changed_on(self, entry: Entry) -> str:
        return _unbroken(_day(entry.updated_at))

    @admin.action(description="Download as CSV", permissions=["export"])
    def download_table(
        self, request: HttpRequest, chosen: QuerySet[Entry]
    ) -> HttpResponseBase:
        visible = Entry.objects.visible_to(request.user).filter(
            pk__in=list(chosen.values_list("pk", flat=True))
        )
        return csv_response(visible, request.user)

    @action(description="Export", icon="download", permissions=["export"])
    def open_exports(self, request: HttpRequest) -> HttpResponse:
        return redirect("admin:kb_entry_exports")

    @action(
        description="Check for conflicts", icon="compare_arrows", permissions=["verify"]
    )
    @confirmed("Compare this entry with the ones that are nearest to it?")
    def check_conflicts(self, request: HttpRequest, object_id: str) -> HttpResponse:
        entry = self.found(request, object_id)
        check_writable(caller(request), entry.knowledge_base_id)
        job = enqueue_entries([entry.pk])
        self.message_user(request, being_compared(request, job), messages.SUCCESS)
        return redirect("admin:kb_entry_change", object_id)

    @admin.display(description="compared", boolean=True)
    def is_compared(self, entry: Entry) -> bool:
        """Return whether the conflict check has seen its current words."""
        return not Entry.objects.not_compared().filter(pk=entry.pk).exists()


def _day(at: datetime) -> str:
    return f"{timezone.localtime(at):%Y-%m-%d}"


def _unbroken(text: str) -> str:
    return format_html('<span class="whitespace-nowrap">{}</span>', text)
