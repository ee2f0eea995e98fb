from django.contrib import admin
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from kb.models import KnowledgeBase


@admin.register(KnowledgeBase)
class KnowledgeBaseAdmin(ModelAdmin):  # type: ignore[misc]  # unfold ships no types
    """Bodies of knowledge."""

    list_display = ["name", "slug", "language", "created_at"]
    search_fields = ["name", "slug"]
    fields = ["slug", "name", "language"]

    def get_readonly_fields(
        self, request: HttpRequest, obj: KnowledgeBase | None = None
    ) -> list[str]:
        """Keep the slug, by which integrators name it."""
        return ["slug"] if obj else []
