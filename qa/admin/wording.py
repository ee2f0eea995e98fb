from django.contrib import admin
from unfold.admin import ModelAdmin

from qa.models import RefusalWording


@admin.register(RefusalWording)
class RefusalWordingAdmin(ModelAdmin):  # type: ignore[misc]  # unfold ships no types
    """What a refusal says; without a row here the built-in words stand."""

    list_display = ["knowledge_base", "language", "shown_reason", "text"]
    list_filter = ["knowledge_base", "language", "reason"]
    list_select_related = ["knowledge_base"]
    search_fields = ["text"]

    @admin.display(description="reason", ordering="reason")
    def shown_reason(self, wording: RefusalWording) -> str:
        """Show what an empty reason stands for."""
        return wording.get_reason_display() if wording.reason else "every other reason"
