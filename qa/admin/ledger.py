from typing import ClassVar

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import display

from accounts.exceptions import NescioError
from accounts.roles import Role, has_role
from kb.models import Entry
from qa.models import ConfidenceMove
from qa.services.entry_confidence import undo_moves

from .read_only import ReadOnlyAdmin


@admin.register(ConfidenceMove)
class ConfidenceMoveAdmin(ReadOnlyAdmin):
    """The ledger: which enriched entries votes moved, how far, and what was undone."""

    list_display: ClassVar = [
        "when", "entry_said", "what", "prior_shown", "moved", "up_shown", "down_shown",
        "raters", "by",
    ]  # fmt: skip
    list_display_links = ["when"]
    list_filter = ["is_undo", "at"]
    list_select_related = ["entry", "by"]
    list_per_page = 50
    show_full_result_count = False
    actions: ClassVar = ["undo"]
    fields: ClassVar = [
        "entry_said", "what", "prior_shown", "moved", "up_shown", "down_shown", "raters",
        "by", "reason", "when",
    ]  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[ConfidenceMove]:
        """Fetch the moves of entries that the user may see."""
        rows: QuerySet[ConfidenceMove] = super().get_queryset(request)
        visible = Entry.objects.visible_to(request.user)
        unread = ("entry__search_vector",)
        return rows.filter(entry__in=visible.values("pk")).defer(*unread)

    def get_readonly_fields(
        self, request: HttpRequest, obj: ConfidenceMove | None = None
    ) -> list[str]:
        """Show everything as text."""
        return self.fields

    def has_undo_permission(self, request: HttpRequest) -> bool:
        """Who writes knowledge takes moves back."""
        return has_role(request.user, Role.CURATOR)

    @admin.action(
        description="Undo: give the entries their confidence without votes back",
        permissions=["undo"],
    )
    def undo(self, request: HttpRequest, chosen: QuerySet[ConfidenceMove]) -> None:
        """Take back what votes made of the chosen moves' entries."""
        by = request.user
        if not isinstance(by, User):
            return
        done = 0
        for entry_id in sorted(set(chosen.values_list("entry_id", flat=True))):
            try:
                undo_moves(entry_id, by=by)
            except NescioError as error:
                self.message_user(request, str(error), messages.WARNING)
            else:
                done += 1
        if done:
            noun = "entry has" if done == 1 else "entries have"
            said = f"{done} {noun} the confidence without votes again."
            self.message_user(request, said, messages.SUCCESS)

    @admin.display(description="when", ordering="at")
    def when(self, move: ConfidenceMove) -> str:
        """Show when it moved."""
        return f"{move.at:%Y-%m-%d %H:%M}"

    @admin.display(description="entry")
    def entry_said(self, move: ConfidenceMove) -> SafeString:
        """Show what the entry says, with the way to it."""
        return format_html(
            '<a class="text-primary-600 dark:text-primary-500" href="{}">{}</a>',
            reverse("admin:kb_entry_change", args=[move.entry_id]),
            move.entry.said,
        )

    @display(  # type: ignore[untyped-decorator]  # unfold ships no types
        description="what",
        ordering="is_undo",
        label={"raised": "success", "lowered": "warning", "undone": "info"},
    )
    def what(self, move: ConfidenceMove) -> str:
        """Show the direction as a badge."""
        if move.is_undo:
            return "undone"
        return "raised" if move.after > move.before else "lowered"

    @admin.display(description="without votes", ordering="prior")
    def prior_shown(self, move: ConfidenceMove) -> str:
        """Show the confidence that the entry has without votes."""
        return f"{move.prior:.2f}"

    @admin.display(description="confidence")
    def moved(self, move: ConfidenceMove) -> str:
        """Show from where to where it moved."""
        return f"{move.before:.2f} → {move.after:.2f}".replace(
            " ", "\N{NO-BREAK SPACE}"
        )

    @admin.display(description="weight for")
    def up_shown(self, move: ConfidenceMove) -> str:
        """Show what counted for the entry after trimming and fading."""
        return f"{move.up:.1f}"

    @admin.display(description="weight against")
    def down_shown(self, move: ConfidenceMove) -> str:
        """Show what counted against it."""
        return f"{move.down:.1f}"
