from collections.abc import Collection, Iterable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.datastructures import MultiValueDict
from unfold.admin import TabularInline
from unfold.widgets import UnfoldAdminFileFieldWidget

from accounts.admin_parts import StyledForm, act_on_row, confirmed, form_page
from accounts.base_admin import action, badge, holders_of, nobody
from accounts.exceptions import NescioError
from accounts.roles import caller
from kb.audiences.models import Audience
from kb.documents.models import Document, KnowledgeBase
from kb.exceptions import InvalidKnowledgeError
from kb.imports.decisions import COUNTS, WRITTEN, Action, Example, examples_for
from kb.imports.models import Import, PlannedEntry
from kb.imports.readers.formats import NAMED, SUFFIXES
from kb.imports.services import Upload, delete_import, enqueue_import, start_import
from kb.interface.admin import InBaseAdmin, WorkedOnAdmin, bases_curated_by, job_of
from kb.tags.models import Tag
from kb.text.cleaning import SOURCE_LIMIT, TITLE_LIMIT

_COLOURS = {
    Import.State.UPLOADED: "info",
    Import.State.PLANNED: "info",
    Import.State.APPLYING: "warning",
    Import.State.APPLIED: "success",
    Import.State.FAILED: "danger",
}


class _FilesInput(UnfoldAdminFileFieldWidget):  # type: ignore[misc]  # unfold ships no types
    allow_multiple_selected = True


class _FilesField(forms.FileField):
    """One or more files, each cleaned like a single one."""

    widget = _FilesInput(attrs={"accept": ",".join(SUFFIXES)})

    def clean(self, data: Any, initial: Any = None) -> list["UploadedFile[Any]"]:
        return [
            super(_FilesField, self).clean(each, initial) for each in data or [None]
        ]


class ImportForm(StyledForm):
    file = _FilesField(label="Files", help_text=f"{NAMED}. You may choose several.")
    knowledge_base = forms.ModelChoiceField(KnowledgeBase.objects.none())
    audience = forms.ModelChoiceField(
        Audience.objects.none(), help_text="Who may see its entries."
    )
    title = forms.CharField(
        required=False,
        max_length=TITLE_LIMIT,
        help_text="The document's title, for a single file; if empty, the file's own.",
    )
    source = forms.CharField(
        required=False,
        max_length=SOURCE_LIMIT,
        help_text="Identifies the document for later versions, for a single file; if "
        "empty, the file's name.",
    )
    product_line = forms.ModelChoiceField(
        Tag.objects.product_lines(),
        required=False,
        empty_label="none",
        help_text="Given to new entries; their questions go to its experts for review.",
    )
    line_of_business = forms.ModelChoiceField(
        Tag.objects.lines_of_business(), required=False, empty_label="none"
    )
    verify = forms.BooleanField(
        required=False,
        help_text="You verify all of its entries; otherwise they go to review.",
    )

    def __init__(
        self,
        data: QueryDict | None,
        files: MultiValueDict[str, Any] | None,
        *,
        user: User,
    ) -> None:
        super().__init__(data, files)
        for name, offered in (
            ("knowledge_base", bases_curated_by(user)),
            ("audience", Audience.objects.visible_to(user)),
        ):
            field: Any = self.fields[name]
            field.queryset = offered
            rows = list(field.queryset[:2])
            if len(rows) == 1:
                field.initial = rows[0]

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        names = [file.name for file in values.get("file", ())]
        for name in ("title", "source"):
            if len(names) > 1 and values.get(name):
                self.add_error(
                    name,
                    f"Leave it empty for {len(names)} files, or import one by one.",
                )
        if twice := {name for name in names if names.count(name) > 1}:
            self.add_error("file", f"Two files are called {min(twice)!r}; rename one.")
        return values

    def uploads(self) -> list[Upload]:
        values = dict(self.cleaned_data)
        files = values.pop("file")
        return [Upload(file=each.file, name=each.name, **values) for each in files]


class PlannedInline(TabularInline):  # type: ignore[misc]  # unfold ships no types
    """What a planned import would change, shown to all who may see the import."""

    model = PlannedEntry
    verbose_name_plural = "what it would do"
    fields = readonly_fields = ("action", "said", "place")
    extra = 0
    can_delete = False
    hide_title = True  # it would only repeat each row's name
    per_page = 50
    has_add_permission = has_change_permission = nobody

    def has_view_permission(
        self, request: HttpRequest, obj: Import | None = None
    ) -> bool:
        return True  # the page has checked that the user may see the import

    def get_queryset(self, request: HttpRequest) -> QuerySet[PlannedEntry]:
        return PlannedEntry.objects.visible_to(request.user)

    @admin.display(description="entry")
    def said(self, row: PlannedEntry) -> str:
        return render_to_string("admin/kb/import/_planned.html", {"row": row})


@admin.register(Import)
class ImportAdmin(InBaseAdmin, WorkedOnAdmin):
    when_empty = "Files that you import are listed here with what they change."
    list_display = [
        "file_name", "shown_state", "summary", "knowledge_base", "audience", "created_at",
    ]  # fmt: skip
    list_filter = ["state", "format", "knowledge_base"]
    list_select_related = ["knowledge_base", "audience"]
    search_fields = ["file_name", "source"]
    actions = ["apply_chosen"]
    actions_list = ["bring"]
    actions_detail = ["apply"]
    has_add_permission = has_change_permission = nobody
    has_bring_permission = holders_of("kb.add_import")
    shown_state = badge("state", _COLOURS)
    fieldsets = [
        (None, {"fields": ["state", "outcome"]}),
        ("File", {"fields": [
            "file_name", "format", "knowledge_base", "audience", "source",
            "document_title", "product_line", "line_of_business", "verify_as", "created_by", "created_at",
            "applied_at",
        ]}),
    ]  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Import]:
        return Import.objects.visible_to(request.user).order_by("-created_at", "-pk")

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Import | None:
        row: Import | None = super().get_object(request, object_id, from_field)
        if row is not None:
            row.seen_examples = examples_for([row], request.user)[row.pk]
        return row

    def get_inlines(self, request: HttpRequest, obj: Import | None) -> list[Any]:
        waits = obj is not None and obj.state == Import.State.PLANNED
        return [PlannedInline] if obj and waits and obj.planned.exists() else []

    def has_apply_permission(
        self, request: HttpRequest, object_id: str | None = None
    ) -> bool:
        row = self.get_object(request, object_id) if object_id else None
        waits = row is not None and row.state == Import.State.PLANNED
        return self.has_bring_permission(request) and waits

    def useless_actions(self, key: int) -> Collection[str]:
        # If someone applies one nevertheless, the service's error names the remedy.
        row = Import.objects.filter(pk=key).first()
        return ["apply"] if row and row.is_unreadable else []

    def delete_model(self, request: HttpRequest, obj: Import) -> None:
        delete_import(obj)

    @action(description="Apply this import", permissions=["apply"])
    @confirmed("Apply this import?")
    def apply(self, request: HttpRequest, object_id: str) -> HttpResponse:
        row, by = self.found(request, object_id), caller(request)

        def begin() -> str:
            enqueue_import(row, apply=True, by=by)
            return "The import is being applied."

        return act_on_row(self, request, row.pk, begin)

    @admin.action(description="Apply", permissions=["bring"])
    def apply_chosen(self, request: HttpRequest, queryset: QuerySet[Import]) -> None:
        by, begun = caller(request), 0
        for row in queryset:
            try:
                enqueue_import(row, apply=True, by=by)
                begun += 1
            except NescioError as error:
                said = f"{row.file_name}: {error}"
                self.message_user(request, said, messages.ERROR)
        if begun:
            what = "import is" if begun == 1 else "imports are"
            self.message_user(request, f"{begun} {what} being applied.")

    @action(description="Import files", url_path="upload", permissions=["bring"])
    def bring(self, request: HttpRequest) -> HttpResponse:
        user = caller(request)
        form = ImportForm(request.POST or None, request.FILES or None, user=user)
        if request.method == "POST" and form.is_valid():
            try:
                rows = _begun(form.uploads(), by=user)
            except NescioError as error:
                form.add_error(None, str(error))
            else:
                if len(rows) == 1:
                    return redirect("admin:kb_import_change", rows[0].pk)
                said = f"{len(rows)} files are being checked. Apply them here, or open one to see all."
                self.message_user(request, said)
                return redirect("admin:kb_import_changelist")
        template, form_id = "admin/kb/import/upload.html", "import-form"
        return form_page(self, request, form, "Import files", template, form_id=form_id)

    @admin.display(description="result")
    def summary(self, row: Import) -> str:
        return ", ".join(f"{number:,} {name}" for name, number in _counted(row))

    @admin.display(description="result")
    def outcome(self, row: Import) -> str:
        job = job_of(row)
        waits = row.state == Import.State.PLANNED and (not job or job.is_finished)
        applies = waits and not row.is_unreadable
        brought = Document.objects.filter(
            knowledge_base=row.knowledge_base_id,
            audience=row.audience_id,
            source=row.source,
        )
        context = {
            "row": row,
            "document": brought.first() if row.state == Import.State.APPLIED else None,
            "examples": _examples(row),
            "counts": _counted(row),
            "apply": applies and reverse("admin:kb_import_apply", args=[row.pk]),
            "again": reverse("admin:kb_import_bring"),
            "job": job,
            "link": job and reverse("admin:jobs_job_change", args=[job.pk]),
        }
        return render_to_string("admin/kb/import/_outcome.html", context)


@transaction.atomic
def _begun(uploads: Iterable[Upload], *, by: User) -> list[Import]:
    """Start checking all of the files, or none of them."""
    rows: list[Import] = []
    for upload in uploads:
        try:
            row = start_import(upload, by=by)
        except InvalidKnowledgeError as error:
            raise InvalidKnowledgeError(
                error.field, f"{upload.name}: {error}"
            ) from error
        enqueue_import(row, apply=False, by=by)
        rows.append(row)
    return rows


def _counted(row: Import) -> list[tuple[str, int]]:
    """Return the counts in a fixed order, without zeros except for `read`."""
    known = {name: row.counts.get(name, 0) for name in COUNTS}
    return [(name, n) for name, n in known.items() if n or name == "read"]


def _examples(row: Import) -> dict[str, list[Example]]:
    """Return the examples of the actions that are not listed in full below."""
    listed = {*WRITTEN, Action.RETIRED} if row.planned.exists() else set()
    examples = row.seen_examples.items()
    return {name: some for name, some in examples if name not in listed}
