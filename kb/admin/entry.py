from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from unfold.admin import ModelAdmin
from unfold.decorators import display

from accounts.exceptions import NescioError
from accounts.roles import Role, has_role
from kb.models import Audience, Entry, EntryQuerySet
from kb.services.entry_states import (
    erase_entry,
    mark_for_review,
    restore_entry,
    retire_entry,
    verify_entry,
)

from .caller import caller
from .difference import word_difference
from .entry_form import EntryForm
from .revision import RevisionInline

_COLOURS = {
    Entry.State.DRAFT: "info",
    Entry.State.IN_REVIEW: "info",
    Entry.State.VERIFIED: "success",
    Entry.State.NEEDS_REVIEW: "warning",
    Entry.State.RETIRED: "danger",
}


class ExpiryFilter(admin.SimpleListFilter):
    """Past its time, or not."""

    title = "expiry"
    parameter_name = "expiry"

    def lookups(
        self,
        request: HttpRequest,
        model_admin: Any,  # noqa: ANN401  # unfold's
    ) -> list[tuple[str, str]]:
        """Name the choices."""
        return [("expired", "expired"), ("current", "not expired")]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Any]
    ) -> QuerySet[Any] | None:
        """Narrow to the choice."""
        if not isinstance(queryset, EntryQuerySet) or self.value() is None:
            return None
        now = timezone.now()
        return (
            queryset.expired(now)
            if self.value() == "expired"
            else queryset.current(now)
        )


class AudienceFilter(admin.SimpleListFilter):
    """One of the user's audiences."""

    title = "audience"
    parameter_name = "audience"

    def lookups(
        self,
        request: HttpRequest,
        model_admin: Any,  # noqa: ANN401  # unfold's
    ) -> list[tuple[str, str]]:
        """Name the user's audiences, no other."""
        visible = Audience.objects.visible_to(request.user)
        return [(audience.slug, audience.name) for audience in visible]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Any]
    ) -> QuerySet[Any] | None:
        """Narrow to the choice."""
        if self.value() is None:
            return None
        return queryset.filter(audience__slug=self.value())


@admin.register(Entry)
class EntryAdmin(ModelAdmin):  # type: ignore[misc]  # unfold ships no types
    """What is known: written, verified and retired through the services."""

    form = EntryForm
    inlines = [RevisionInline]
    list_display = [
        "said",
        "shown_state",
        "confidence",
        "verification",
        "expiry",
        "audience",
        "uses_count",
        "updated_at",
    ]
    list_filter = ["state", AudienceFilter, ExpiryFilter, "origin", "knowledge_base"]
    list_select_related = ["audience", "verified_by"]
    list_per_page = 50
    show_full_result_count = False
    ordering = ["-updated_at", "-pk"]
    search_fields = ["text"]
    search_help_text = 'Words of question and text; "..." a phrase, -word without it.'
    autocomplete_fields = ["document"]
    actions = ["verify", "mark_for_review", "retire", "restore"]
    readonly_fields = ["verified_by", "verified_at", "created_at", "updated_at"]
    fieldsets = [
        (None, {"fields": ["question", "text", "state", "confidence", "reason"]}),
        (
            "Where it stands",
            {"fields": ["knowledge_base", "document", "section", "audience"]},
        ),
        ("Validity", {"fields": ["language", "valid_until", "owner", "origin"]}),
        (
            "Verification",
            {
                "fields": [
                    "verified_by", "verified_at", "created_at", "updated_at",
                    "revision",
                ]
            },
        ),
    ]  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Entry]:
        """Entries of the user's audiences, with how many answers used each."""
        uses = Entry.objects.filter(pk=OuterRef("pk")).annotate(n=Count("uses"))
        return (
            Entry.objects.visible_to(request.user)
            .annotate(use_count=Subquery(uses.order_by().values("n")))
            .defer("search_vector")
            .order_by(*self.ordering)
        )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Entry], search_term: str
    ) -> tuple[QuerySet[Entry], bool]:
        """Search by the words' stems, which an index holds."""
        words = search_term.replace("\0", " ").strip()
        if not words or not isinstance(queryset, EntryQuerySet):
            return queryset, False
        return queryset.saying(words), False

    def get_readonly_fields(
        self, request: HttpRequest, obj: Entry | None = None
    ) -> list[str]:
        """Keep where an entry comes from."""
        fixed = ["knowledge_base", "origin"] if obj else []
        return [*self.readonly_fields, *fixed]

    def get_form(
        self,
        request: HttpRequest,
        obj: Entry | None = None,
        change: bool = False,
        **options: Any,  # noqa: ANN401  # Django's
    ) -> type[EntryForm]:
        """Tell the form whose it is."""
        form: type[EntryForm] = super().get_form(request, obj, change, **options)
        form.user = caller(request)
        form.may_verify = has_role(request.user, Role.CURATOR)
        return form

    def get_urls(self) -> list[URLPattern]:
        """Add the page that compares two revisions."""
        compare = path(
            "<int:entry_id>/compare",
            self.admin_site.admin_view(self.compare),
            name="kb_entry_compare",
        )
        return [compare, *super().get_urls()]

    def save_model(
        self, request: HttpRequest, obj: Entry, form: EntryForm, change: bool
    ) -> None:
        """Write through the services."""
        obj.pk = form.write().pk
        obj.refresh_from_db()

    def delete_model(self, request: HttpRequest, obj: Entry) -> None:
        """Erase through the services."""
        erase_entry(entry_id=obj.pk)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Entry]) -> None:
        """Erase through the services."""
        for entry_id in list(queryset.values_list("pk", flat=True)):
            erase_entry(entry_id=entry_id)

    @admin.display(description="entry", ordering="text")
    def said(self, entry: Entry) -> str:
        """Show the question, if any, and how the text begins."""
        said = f"{entry.question} {entry.text}" if entry.question else entry.text
        return said if len(said) <= 120 else f"{said[:119]}…"

    @display(description="state", ordering="state", label=_COLOURS)  # type: ignore[untyped-decorator]  # unfold ships no types
    def shown_state(self, entry: Entry) -> tuple[str, str]:
        """Show the state as a badge."""
        return entry.state, entry.get_state_display()

    @display(  # type: ignore[untyped-decorator]  # unfold ships no types
        description="expires",
        ordering="valid_until",
        label={"expired": "danger", "current": "info"},
    )
    def expiry(self, entry: Entry) -> tuple[str, str] | None:
        """Show when it expires, and loudly that it has."""
        if entry.valid_until is None:
            return None
        day = f"{timezone.localtime(entry.valid_until):%Y-%m-%d}"
        if entry.valid_until <= timezone.now():
            return "expired", f"expired {day}"
        return "current", day

    @admin.display(description="verified", ordering="verified_at")
    def verification(self, entry: Entry) -> str | None:
        """Show who vouched for it, and when."""
        if entry.verified_by is None or entry.verified_at is None:
            return None
        day = timezone.localtime(entry.verified_at)
        return f"{entry.verified_by.get_username()}, {day:%Y-%m-%d}"

    @admin.display(description="uses", ordering="use_count")
    def uses_count(self, entry: Entry) -> int:
        """Show in how many answers it was evidence."""
        return int(getattr(entry, "use_count", 0) or 0)

    @admin.action(description="Verify: right as it stands", permissions=["change"])
    def verify(self, request: HttpRequest, chosen: QuerySet[Entry]) -> None:
        """Vouch for the chosen entries."""
        self._each(request, chosen, verify_entry, "verified")

    @admin.action(description="Mark for review", permissions=["change"])
    def mark_for_review(self, request: HttpRequest, chosen: QuerySet[Entry]) -> None:
        """Put the chosen entries into review."""
        self._each(request, chosen, mark_for_review, "marked for review")

    @admin.action(description="Retire: out of every answer", permissions=["change"])
    def retire(self, request: HttpRequest, chosen: QuerySet[Entry]) -> None:
        """Take the chosen entries out of every answer."""
        self._each(request, chosen, retire_entry, "retired")

    @admin.action(description="Restore what was retired", permissions=["change"])
    def restore(self, request: HttpRequest, chosen: QuerySet[Entry]) -> None:
        """Undo retirements."""
        self._each(request, chosen, restore_entry, "restored")

    def compare(self, request: HttpRequest, entry_id: int) -> HttpResponse:
        """Show what changed between two revisions of an entry."""
        entry = self.get_object(request, str(entry_id))
        if entry is None:
            raise Http404
        if not self.has_view_permission(request, entry):
            raise PermissionDenied
        revisions = list(entry.revisions.select_related("author"))
        by_number = {str(revision.number): revision for revision in revisions}
        old = by_number.get(request.GET.get("old", "1"))
        new = by_number.get(request.GET.get("new", str(revisions[0].number)))
        if old is None or new is None:
            raise Http404
        context = {
            **self.admin_site.each_context(request),
            "opts": self.model._meta,
            "title": "Compare revisions",
            "entry": entry,
            "revisions": revisions,
            "old": old,
            "new": new,
            "question": word_difference(old.question, new.question),
            "text": word_difference(old.text, new.text),
        }
        return TemplateResponse(request, "admin/kb/entry/compare.html", context)

    def _each(
        self,
        request: HttpRequest,
        chosen: QuerySet[Entry],
        change: Callable[..., Entry],
        done: str,
    ) -> None:
        """Change entries one by one, telling which could not be."""
        changed = 0
        for entry_id in list(chosen.order_by("pk").values_list("pk", flat=True)):
            try:
                change(entry_id=entry_id, by=caller(request))
            except NescioError as error:
                self.message_user(request, str(error), level=messages.ERROR)
            else:
                changed += 1
        noun = "entry" if changed == 1 else "entries"
        if changed:
            self.message_user(
                request, f"{changed} {noun} {done}.", level=messages.SUCCESS
            )
