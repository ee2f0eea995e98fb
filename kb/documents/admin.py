from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from unfold.admin import TabularInline
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldBooleanSwitchWidget

from accounts.admin import KnowledgeRoleInline
from accounts.admin_parts import confirmed, field_errors
from accounts.base_admin import BaseAdmin, Fieldsets, action, column, holders_of
from accounts.models import KnowledgeRole, count_of
from accounts.roles import caller
from accounts.services import holding_roles, keeping_staff
from kb.audiences.models import Audience
from kb.audiences.services import ensure_audience
from kb.documents.knowledge_bases import (
    archive_knowledge_base,
    unarchive_knowledge_base,
)
from kb.documents.models import Document, KnowledgeBase, Section
from kb.documents.services import (
    SectionNode,
    check_tree,
    create_document,
    edit_document,
    in_reading_order,
)
from kb.embedding.services import reads
from kb.enrichment.admin_forms import to_seeds
from kb.enrichment.background import SEED_LIMIT
from kb.enrichment.services import MAX_SEEDS
from kb.entries.models import Entry
from kb.interface.admin import (
    InBaseAdmin,
    RefusedDeletionAdmin,
    ServiceAdmin,
    ServiceForm,
)
from kb.upkeep.services import enqueue_round


class SectionForm(forms.ModelForm):  # type: ignore[type-arg]  # not at run time
    position = forms.IntegerField(
        min_value=0,
        required=False,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="If empty, it becomes the last one.",
    )

    class Meta:
        model = Section
        fields = ["heading", "parent", "position"]

    def _post_clean(self) -> None:
        """Keep the instance unchanged; the service rebuilds the tree."""


class SectionFormSet(forms.BaseInlineFormSet):  # type: ignore[type-arg]  # as above
    tree: tuple[SectionNode, ...] = ()

    def get_queryset(self) -> QuerySet[Section]:
        """Return the sections in reading order, each before its subsections."""
        if not hasattr(self, "_in_order"):
            rows = in_reading_order(list(super().get_queryset()))
            # A list will do: Django only counts, indexes and iterates over it.
            self._in_order = cast("QuerySet[Section]", rows)
        return self._in_order

    def clean(self) -> None:
        if any(self.errors):
            return
        kept = (form for form in self.forms if form not in self.deleted_forms)
        rows = [form.cleaned_data for form in kept if form.cleaned_data.get("heading")]
        below = defaultdict(list)
        for row in rows:
            parent = row.get("parent")
            below[parent.pk if parent else None].append(row)
        self.tree = _grow(below, None)
        if _size(self.tree) != len(rows):
            raise ValidationError(
                "A section is below itself or below a deleted one; give it another "
                "parent."
            )
        with field_errors():
            check_tree(self.tree)

    def validate_unique(self) -> None:
        """Skip the check: positions are renumbered, so duplicates are allowed."""


def _grow(
    below: dict[int | None, list[dict[str, Any]]], parent_id: int | None
) -> tuple[SectionNode, ...]:
    last = float("inf")
    rows = sorted(
        below.get(parent_id, []),
        key=lambda row: last if row["position"] is None else row["position"],
    )
    nodes = []
    for row in rows:
        section = row.get("id")
        children = _grow(below, section.pk) if section else ()
        nodes.append(
            SectionNode(row["heading"], children, section.pk if section else None)
        )
    return tuple(nodes)


def _size(nodes: tuple[SectionNode, ...]) -> int:
    return sum(1 + _size(node.children) for node in nodes)


class SectionInline(TabularInline):  # type: ignore[misc]  # unfold ships no types
    model = Section
    form = SectionForm
    formset = SectionFormSet
    fields = ["heading", "parent", "position"]
    extra = 1

    def get_formset(
        self, request: HttpRequest, obj: Document | None = None, **options: Any
    ) -> type[SectionFormSet]:
        formset: type[SectionFormSet] = super().get_formset(request, obj, **options)
        parent: Any = formset.form.base_fields["parent"]
        sections = (
            Section.objects.filter(document=obj) if obj else Section.objects.none()
        )
        parent.queryset = sections
        parent.choices = [
            ("", "none: top level"),
            *((each.pk, each.heading) for each in in_reading_order(list(sections))),
        ]
        return formset


class DocumentForm(ServiceForm):
    entries_follow = forms.BooleanField(
        label="Its entries too",
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text="Entries that have the old audience get the new one too.",
    )

    class Meta:
        model = Document
        fields = ["knowledge_base", "title", "source", "audience"]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        audience: Any = self.fields.get("audience")
        if audience is not None:
            audience.queryset = Audience.objects.visible_to(self.user)
        if self.instance.pk is None:
            del self.fields["entries_follow"]

    def write(self) -> Document:
        if self.instance.pk is None:
            return create_document(author=self.user, **self.cleaned_data)
        return edit_document(
            document_id=self.instance.pk, author=self.user, **self.cleaned_data
        )


@admin.register(Document)
class DocumentAdmin(InBaseAdmin, ServiceAdmin, RefusedDeletionAdmin):
    form = DocumentForm
    inlines = [SectionInline]
    list_display = [
        "title", "source", "knowledge_base", "audience", "number_of_entries", "updated_at",
    ]  # fmt: skip
    list_filter = ["knowledge_base"]
    list_select_related = ["knowledge_base", "audience"]
    search_fields = ["title", "source"]
    readonly_fields = ["created_by", "created_at", "updated_at"]
    actions = ["propose"]
    fixed_fields = ["knowledge_base"]
    has_propose_permission = holders_of("kb.change_proposal")
    fields = [
        "knowledge_base", "title", "source", "audience", "entries_follow", "created_by",
        "created_at", "updated_at",
    ]  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Document]:
        return (
            Document.objects.visible_to(request.user)
            .filter(self.rows_of(request))
            .annotate(entry_count=count_of(Entry.objects.all(), "document"))
            .order_by("title", "pk")
        )

    @admin.action(
        description="Propose entries from the headings", permissions=["propose"]
    )
    def propose(
        self, request: HttpRequest, chosen: QuerySet[Document]
    ) -> HttpResponse | None:
        sections = Section.objects.filter(document__in=chosen).order_by(
            "document__title", "document", "pk"
        )
        headings = sections.values_list("document__title", "heading")[:MAX_SEEDS]
        if not headings:
            self.message_user(
                request, "None of these has a heading.", level=messages.WARNING
            )
            return None
        seeds = (f"{title}: {heading}"[:SEED_LIMIT] for title, heading in headings)
        return to_seeds(request, seeds, per_seed=3)

    def get_fields(
        self, request: HttpRequest, obj: Document | None = None
    ) -> list[str]:
        return [name for name in self.fields if obj or name != "entries_follow"]

    number_of_entries = column("entries", lambda document: document.entry_count)

    def save_formset(
        self,
        request: HttpRequest,
        form: DocumentForm,
        formset: SectionFormSet,
        change: bool,
    ) -> None:
        formset.new_objects = formset.changed_objects = formset.deleted_objects = []
        if formset.has_changed():
            edit_document(
                document_id=form.instance.pk,
                author=caller(request),
                sections=formset.tree,
            )


class RolesHereInline(KnowledgeRoleInline):
    verbose_name_plural = "roles in this knowledge base"
    fields = ["user", "group", "role"]


class ArchivedFilter(admin.SimpleListFilter):
    """Filters for knowledge bases in use (the default) or archived."""

    title = "state"
    parameter_name = "archived"

    def lookups(self, *_: object) -> list[tuple[str, str]]:
        return [("yes", "Archived")]

    def choices(self, changelist: Any) -> Iterator[Any]:  # Django's
        in_use, archived = super().choices(changelist)
        yield {**in_use, "display": "In use"}
        yield archived

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:  # Django's
        rows = KnowledgeBase.objects
        wanted = rows.archived() if self.value() == "yes" else rows.in_use()
        return queryset.filter(pk__in=wanted)


@admin.register(KnowledgeBase)
class KnowledgeBaseAdmin(BaseAdmin):
    inlines = [RolesHereInline]
    actions_detail = ["archive_this", "unarchive_this"]
    has_archive_permission = holders_of("kb.change_knowledgebase")
    list_filter = [ArchivedFilter]
    readonly_fields = ["archived_at"]
    list_display = ["name", "slug", "language", "created_at"]
    search_fields = ["name", "slug"]
    prepopulated_fields = {"slug": ["name"]}
    fixed_fields = ["slug"]
    fieldsets = [
        (None, {"fields": ["name", "slug", "language"]}),
        (
            "Review",
            {"fields": ["review_interval_days", "when_overdue", "overdue_grace_days"]},
        ),
        ("Data protection", {"fields": ["keep_texts_days"]}),
    ]

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Hide the "Show all" link, which would only list knowledge bases in use."""
        found = super().get_changelist_instance(request)
        found.full_result_count = found.result_count
        return found

    def get_fieldsets(
        self, request: HttpRequest, obj: KnowledgeBase | None = None
    ) -> Fieldsets:
        found: Fieldsets = super().get_fieldsets(request, obj)
        if obj is None or obj.archived_at is None:
            return found
        return [("Archived", {"fields": ["archived_at"]}), *found]

    def useless_actions(self, key: int) -> Collection[str]:
        is_used = KnowledgeBase.objects.in_use().filter(pk=key).exists()
        return ["unarchive_this" if is_used else "archive_this"]

    @action(description="Archive", icon="archive", permissions=["archive"])
    @confirmed(
        "Archive this knowledge base? Until it is unarchived, it is "
        "read-only: it can neither be asked nor changed."
    )
    def archive_this(self, request: HttpRequest, object_id: str) -> HttpResponse:
        base = archive_knowledge_base(knowledge_base_id=int(object_id))
        said = f"{base} is archived. It is listed under the state Archived."
        self.message_user(request, said, messages.SUCCESS)
        return redirect("admin:kb_knowledgebase_change", object_id)

    @action(description="Unarchive", icon="unarchive", permissions=["archive"])
    @confirmed("Unarchive this knowledge base? It can then be asked and changed again.")
    def unarchive_this(self, request: HttpRequest, object_id: str) -> HttpResponse:
        base = unarchive_knowledge_base(knowledge_base_id=int(object_id))
        self.message_user(request, f"{base} is in use again.", messages.SUCCESS)
        return redirect("admin:kb_knowledgebase_change", object_id)

    def save_model(
        self,
        request: HttpRequest,
        obj: KnowledgeBase,
        form: "forms.ModelForm[KnowledgeBase]",
        change: bool,
    ) -> None:
        super().save_model(request, obj, form, change)
        if not change:
            ensure_audience()
        if "language" in form.changed_data and not reads(obj.language):
            said = (
                "The bundled models read English: in another language, search by "
                "meaning finds little and most questions are refused. Have an "
                "operator switch to an embedding model that reads it "
                "(manage.py switch_embedder)."
            )
            self.message_user(request, said, messages.WARNING)
        if change and "review_interval_days" in form.changed_data:
            enqueue_round()

    def save_related(
        self, request: HttpRequest, form: Any, formsets: Any, change: bool
    ) -> None:
        roles = KnowledgeRole.objects.filter(knowledge_base=form.instance.pk)
        with keeping_staff(lambda: holding_roles(roles)):
            super().save_related(request, form, formsets, change)
