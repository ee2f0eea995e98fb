from typing import ClassVar

from django.contrib import admin
from django.http import HttpRequest
from unfold.decorators import display

from qa.models import Vote

from .read_only import ReadOnlyAdmin


@admin.register(Vote)
class VoteAdmin(ReadOnlyAdmin):
    """Thumbs with their comments, newest first."""

    list_display = ["thumb", "comment", "answer", "outcome", "user", "updated_at"]
    list_filter = ["is_up", "answer__outcome", "updated_at"]
    list_select_related = ["answer", "user"]
    search_fields = ["comment", "answer__question", "user__username"]
    fields: ClassVar = [
        "answer",
        "thumb",
        "comment",
        "user",
        "created_at",
        "updated_at",
    ]

    @display(description="thumb", label={"up": "success", "down": "danger"})  # type: ignore[untyped-decorator]  # unfold ships no types
    def thumb(self, vote: Vote) -> str:
        """Show the thumb as a badge."""
        return "up" if vote.is_up else "down"

    @admin.display(description="outcome")
    def outcome(self, vote: Vote) -> str:
        """Show what was voted on."""
        return vote.answer.outcome

    def get_readonly_fields(
        self, request: HttpRequest, obj: Vote | None = None
    ) -> list[str]:
        """Show everything as text."""
        return self.fields
