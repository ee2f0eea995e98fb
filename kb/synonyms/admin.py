from typing import ClassVar

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from kb.entries.models import Entry
from kb.interface.admin import InBaseAdmin, ServiceAdmin, ServiceForm
from kb.synonyms.models import Synonym
from kb.synonyms.services import add_synonym


class SynonymForm(ServiceForm):
    class Meta:
        model = Synonym
        fields = ["knowledge_base", "word", "means"]

    def write(self) -> Synonym:
        return add_synonym(by=self.user, **self.cleaned_data)


@admin.register(Synonym)
class SynonymAdmin(InBaseAdmin, ServiceAdmin):
    form = SynonymForm
    list_display: ClassVar = [
        "word", "means", "knowledge_base", "added_by", "created_at",
    ]  # fmt: skip
    list_filter: ClassVar = ["knowledge_base"]
    search_fields: ClassVar = ["word", "means"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Synonym]:
        rows = Synonym.objects.filter(self.rows_of(request))
        return rows.select_related("knowledge_base", "added_by")

    def has_change_permission(
        self, request: HttpRequest, obj: Synonym | None = None
    ) -> bool:
        return False  # another word is another synonym

    def save_model(
        self, request: HttpRequest, obj: Synonym, form: SynonymForm, change: bool
    ) -> None:
        super().save_model(request, obj, form, change)
        entries = Entry.objects.visible_to(request.user).filter(
            knowledge_base=obj.knowledge_base
        )
        using = entries.saying(f'"{obj.word}"').count()
        if using:
            said = "An entry uses" if using == 1 else f"{using:,} entries use"
            self.message_user(
                request,
                f"{said} “{obj.word}” too: questions with it are still read with "
                f"“{obj.means}”. If the two mean different things, remove the synonym.",
                messages.WARNING,
            )
