from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from unfold.admin import TabularInline

from kb.models import Entry, Revision


class RevisionInline(TabularInline):  # type: ignore[misc]  # unfold ships no types
    """What an entry said before, newest first; to look at and to compare."""

    model = Revision
    fields = [
        "number",
        "created_at",
        "author",
        "state",
        "confidence",
        "text",
        "reason",
        "compared",
    ]
    readonly_fields = fields
    extra = 0
    can_delete = False
    per_page = 20

    def get_queryset(self, request: HttpRequest) -> QuerySet[Revision]:
        """Fetch the authors with the revisions."""
        revisions: QuerySet[Revision] = super().get_queryset(request)
        return revisions.select_related("author").order_by("-number")

    def has_add_permission(
        self, request: HttpRequest, obj: Entry | None = None
    ) -> bool:
        """Revisions come from changes alone."""
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: Entry | None = None
    ) -> bool:
        """Revisions never change."""
        return False

    @admin.display(description="changes")
    def compared(self, revision: Revision) -> str:
        """Link to what this revision changed."""
        if revision.number == 1:
            return ""
        address = reverse("admin:kb_entry_compare", args=[revision.entry_id])
        return format_html(
            '<a class="underline" href="{}?old={}&new={}">with {}</a>',
            address,
            revision.number - 1,
            revision.number,
            revision.number - 1,
        )
