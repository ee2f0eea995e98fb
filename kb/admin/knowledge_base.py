from typing import TYPE_CHECKING

from django.contrib import admin
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from kb.models import KnowledgeBase
from kb.services.upkeep import enqueue_round

if TYPE_CHECKING:
    from django.forms import ModelForm


@admin.register(KnowledgeBase)
class KnowledgeBaseAdmin(ModelAdmin):  # type: ignore[misc]  # unfold ships no types
    """Bodies of knowledge."""

    list_display = ["name", "slug", "language", "created_at"]
    search_fields = ["name", "slug"]
    fieldsets = [
        (None, {"fields": ["slug", "name", "language"]}),
        (
            "Review",
            {
                "fields": [
                    "review_interval_days",
                    "when_overdue",
                    "overdue_grace_days",
                ]
            },
        ),
    ]

    def get_readonly_fields(
        self, request: HttpRequest, obj: KnowledgeBase | None = None
    ) -> list[str]:
        """Keep the slug, by which integrators name it."""
        return ["slug"] if obj else []

    def save_model(
        self,
        request: HttpRequest,
        obj: KnowledgeBase,
        form: "ModelForm[KnowledgeBase]",
        change: bool,
    ) -> None:
        """Save, and let a changed interval reach the entries in the background."""
        super().save_model(request, obj, form, change)
        if change and "review_interval_days" in form.changed_data:
            enqueue_round()
