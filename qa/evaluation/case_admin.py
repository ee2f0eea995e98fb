"""The admin of saved test cases: list, edit, import and export."""

import tempfile
from pathlib import Path
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from unfold.widgets import UnfoldAdminFileFieldWidget, UnfoldAdminTextareaWidget

from accounts.admin_parts import StyledForm, form_page
from accounts.base_admin import UserFormAdmin, action, badge, holders_of
from accounts.exceptions import NescioError
from accounts.people import group_names
from accounts.roles import Role, caller, has_role_in
from kb.documents.models import KnowledgeBase
from qa.evaluation.cases import Case
from qa.evaluation.knowledge import USERNAME
from qa.evaluation.models import SavedCase
from qa.evaluation.saved_cases import (
    as_lines,
    check_cases,
    import_cases,
    key_of,
    visible_cases,
    write_cases,
)
from qa.pipeline.gates import Gate, Reason

_MAX_BYTES = 2_000_000


class BringCasesForm(StyledForm):
    knowledge_base = forms.ModelChoiceField(
        KnowledgeBase.objects.in_use().order_by("name")
    )
    file = forms.FileField(
        widget=UnfoldAdminFileFieldWidget(attrs={"accept": ".jsonl"}),
        help_text="JSON Lines as for manage.py evaluate own; evidence holds ids of "
        "entries. Cases with a known id are updated.",
    )

    def __init__(self, *args: Any, user: User) -> None:
        super().__init__(*args)
        bases: Any = self.fields["knowledge_base"]
        bases.queryset = bases.queryset.of_role(user, Role.SME)

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > _MAX_BYTES:
            raise forms.ValidationError(
                f"The file has {file.size:,} bytes and may have {_MAX_BYTES:,}; split it."
            )
        try:
            file.read().decode("utf-8")
        except UnicodeDecodeError as error:
            msg = f"The file is not UTF-8 text: {error}. Save it as UTF-8."
            raise forms.ValidationError(msg) from error
        file.seek(0)
        return file


class LinesField(forms.CharField):
    """A list of texts, edited one per line."""

    widget = UnfoldAdminTextareaWidget({"rows": 2})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> list[str]:
        lines = (line.strip() for line in super().clean(value).splitlines())
        return [line for line in lines if line]

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(self.prepare_value(initial), data)


class SavedCaseForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable when it runs
    user: User  # the editor; set by the admin
    answer_contains = LinesField(
        required=False, help_text="One of these lines must be in the answer."
    )
    references = LinesField(
        required=False,
        help_text="Right answers, one per line; one must be in the answer.",
    )

    class Meta:
        model = SavedCase
        fields = (
            "knowledge_base", "question", "expect", "entries", "answer_contains",
            "groups", "references", "gate", "reason", "group",
        )  # fmt: skip
        widgets: ClassVar = {"question": UnfoldAdminTextareaWidget({"rows": 2})}
        labels: ClassVar = {
            "groups": "Asked as a member of",
            "group": "Kept together as",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "groups" in self.fields:
            field: Any = self.fields["groups"]
            field.queryset = Group.objects.exclude(name__in=[*Role, USERNAME])
        if "knowledge_base" in self.fields:
            bases: Any = self.fields["knowledge_base"]
            bases.queryset = bases.queryset.of_role(self.user, Role.SME)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not self.errors:
            try:
                check_cases([self.as_case()], knowledge_base=self.base, by=self.user)
            except NescioError as error:
                self.add_error(None, str(error))
        return cleaned

    @property
    def base(self) -> KnowledgeBase:
        base: KnowledgeBase = (
            self.cleaned_data.get("knowledge_base") or self.instance.knowledge_base
        )
        return base

    def as_case(self) -> Case:
        given = self.cleaned_data
        names = group_names(given["groups"])
        return Case(
            id=self.instance.key or key_of(given["question"], names),
            question=given["question"],
            is_answerable=given["expect"] == SavedCase.Expect.ANSWERED,
            gate=Gate(given["gate"]) if given["gate"] else None,
            reason=Reason(given["reason"]) if given["reason"] else None,
            evidence=tuple(str(entry.pk) for entry in given["entries"]),
            answer_contains=tuple(given["answer_contains"]),
            asker=tuple(names),
            references=tuple(given["references"]),
            group=given["group"],
        )


@admin.register(SavedCase)
class SavedCaseAdmin(UserFormAdmin):
    form = SavedCaseForm
    list_display: ClassVar = [
        "__str__", "shown_expect", "knowledge_base", "created_by", "updated_at",
    ]  # fmt: skip
    list_filter: ClassVar = ["knowledge_base", "expect"]
    list_select_related: ClassVar = ["knowledge_base", "created_by"]
    search_fields: ClassVar = ["question"]
    autocomplete_fields: ClassVar = ["entries"]
    actions_list: ClassVar = ["bring", "take"]
    fixed_fields = ("knowledge_base",)
    readonly_fields: ClassVar = ["key", "created_by", "created_at", "updated_at"]
    has_bring_permission = holders_of("qa.add_savedcase")
    has_take_permission = holders_of("qa.view_savedcase")
    shown_expect = badge("expect", {"answered": "success", "refused": "info"})
    fieldsets: ClassVar = [
        (None, {"fields": [
            "knowledge_base", "question", "expect", "entries",
            "answer_contains", "groups",
        ]}),
        (
            "Further claims",
            {
                "fields": ["references", "gate", "reason", "group"],
                "classes": ["collapse"],
            },
        ),
        ("Record", {"fields": ["key", "created_by", "created_at", "updated_at"]}),
    ]  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[SavedCase]:
        return super().get_queryset(request).visible_to(request.user)  # type: ignore[no-any-return]  # a SavedCaseQuerySet

    def has_delete_permission(
        self, request: HttpRequest, obj: SavedCase | None = None
    ) -> bool:
        user = request.user
        may = obj is None or (
            has_role_in(user, Role.CURATOR, obj.knowledge_base_id)
            and obj.knowledge_base.archived_at is None
        )
        return may and super().has_delete_permission(request, obj)

    def save_model(
        self, request: HttpRequest, obj: SavedCase, form: SavedCaseForm, change: bool
    ) -> None:
        (saved,) = write_cases(
            [form.as_case()], knowledge_base=form.base, by=caller(request)
        )
        obj.pk = saved.pk
        obj.refresh_from_db()

    @action(description="Import test cases", permissions=["bring"])
    def bring(self, request: HttpRequest) -> HttpResponse:
        form = BringCasesForm(
            request.POST or None, request.FILES or None, user=caller(request)
        )
        if form.is_valid():
            given = form.cleaned_data
            try:
                count = _import(given["file"], given["knowledge_base"], caller(request))
            except NescioError as error:
                form.add_error("file", str(error))
            else:
                said = f"{count} test {'case is' if count == 1 else 'cases are'} saved."
                self.message_user(request, said, messages.SUCCESS)
                return redirect("admin:qa_savedcase_changelist")
        return form_page(
            self, request, form, "Import test cases", form_id="bring-cases"
        )

    @action(description="Export as JSON Lines", permissions=["take"])
    def take(self, request: HttpRequest) -> HttpResponse:
        bases = KnowledgeBase.objects.order_by("pk")
        found = [
            case for base in bases for _, case in visible_cases(base, caller(request))
        ]
        response = HttpResponse(as_lines(found), content_type="application/jsonl")
        response["Content-Disposition"] = 'attachment; filename="test-cases.jsonl"'
        return response


def _import(file: Any, knowledge_base: KnowledgeBase, by: User) -> int:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / (Path(file.name).name or "cases.jsonl")
        path.write_bytes(file.read())
        return import_cases(path, knowledge_base=knowledge_base, by=by)
