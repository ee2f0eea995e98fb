"""An entry's alternative questions on its page in the admin: read, add, remove."""

from typing import Any, ClassVar

from django import forms
from django.db.models import TextField
from django.http import HttpRequest
from unfold.admin import TabularInline
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.admin_parts import field_errors
from accounts.roles import Role, caller, has_role_somewhere
from kb.text.cleaning import WORDING_LIMIT, clean_text

from .models import Entry
from .wordings import Wording, add_wordings, remove_wordings


class WordingForm(forms.ModelForm):  # type: ignore[type-arg]  # not at run time
    class Meta:
        model = Wording
        fields = ("text", "answers")

    def clean_text(self) -> str:
        said = self.cleaned_data["text"]
        with field_errors():
            return clean_text(said, field="question", limit=WORDING_LIMIT)


class WordingInline(TabularInline):  # type: ignore[misc]  # unfold ships no types
    model = Wording
    form = WordingForm
    verbose_name = "alternative question"
    verbose_name_plural = "alternative questions"
    fields = ("text", "answers", "added_by", "created_at")
    readonly_fields = ("added_by", "created_at")
    extra = 0
    hide_title = True  # the title would repeat each question
    formfield_overrides: ClassVar = {TextField: {"widget": UnfoldAdminTextInputWidget}}

    def has_view_permission(
        self, request: HttpRequest, obj: Entry | None = None
    ) -> bool:
        return has_role_somewhere(caller(request), Role.SME)

    has_add_permission = has_delete_permission = has_view_permission

    def has_change_permission(
        self, request: HttpRequest, obj: Entry | None = None
    ) -> bool:
        return False  # another question is another wording


def save_wordings(request: HttpRequest, entry: Entry, formset: Any) -> None:
    formset.save(commit=False)
    removed = [row.pk for row in formset.deleted_objects]
    remove_wordings(Wording.objects.filter(pk__in=removed))
    for answers in (True, False):
        added = [row.text for row in formset.new_objects if row.answers is answers]
        if added:
            add_wordings(entry, added, by=caller(request), answers=answers)
