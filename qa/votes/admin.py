from functools import partial
from typing import ClassVar

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.safestring import SafeString

from accounts.admin_parts import (
    EstimatingPaginator,
    ListFilter,
    ReadOnlyAdmin,
    change_each,
)
from accounts.base_admin import column, display, holders_of, holders_somewhere
from accounts.people import person_name
from accounts.rest import csv_download
from accounts.roles import Role, caller, where_role
from kb.entries.models import Entry
from qa.answers.admin import AnswerColumns, link_to_entry
from qa.votes.entry_confidence import undo_moves
from qa.votes.models import ConfidenceMove, Vote, VoteQuerySet
from qa.votes.services import csv_lines, handle_votes, reopen_votes

_WITHHELD = "withheld: the answer cites entries that you may not see"


class _StateFilter(ListFilter):
    title = "state"
    parameter_name = "state"
    choices_by_value = {"open": "open", "handled": "dealt with"}

    def narrow(
        self, rows: VoteQuerySet, value: str, request: HttpRequest
    ) -> VoteQuerySet:
        return rows.filter(handled_at__isnull=value == "open")


class _ReasonFilter(ListFilter):
    title = "what is wrong"
    parameter_name = "what"
    choices_by_value = dict(Vote.Reason.choices)

    def narrow(
        self, rows: VoteQuerySet, value: str, request: HttpRequest
    ) -> VoteQuerySet:
        return rows.filter(reasons__contains=[value])


@admin.register(Vote)
class VoteAdmin(AnswerColumns, ReadOnlyAdmin):
    """The list of votes: on which answer, why, and whether they were dealt with."""

    when_empty = "Thumbs on answers and refusals are listed here, with their reasons."
    list_display: ClassVar = [
        "thumb", "question", "outcome", "gate", "reasons_said", "answers_it", "says", "user",
        "state", "updated_at",
    ]  # fmt: skip
    list_display_links: ClassVar = ["thumb", "question"]
    list_filter: ClassVar = [
        _StateFilter, "is_up", _ReasonFilter, "answer__outcome", "answer__gate",
        "answer__knowledge_base", "updated_at",
    ]  # fmt: skip
    list_select_related = ["answer", "user", "handled_by"]
    list_per_page = 25
    paginator = EstimatingPaginator
    search_fields = ["answer__question", "user__username"]
    searched_person = "user"
    search_help_text = "Beginnings of words in the question, or who voted"
    actions: ClassVar = ["handle", "reopen", "export"]
    has_handle_permission = holders_somewhere(Role.SME)
    fieldsets: ClassVar = [
        (None, {"fields": [
            "thumb", "reasons_said", "answers_it", "says", "expects", "user",
            "created_at", "updated_at", "handled_at", "handled_by",
        ]}),
        ("On", {"fields": ["asked", "outcome", "reason", "text"]}),
        ("How it was decided", {"fields": ["gates"]}),
        ("Evidence", {"fields": ["pieces"]}),
    ]  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Vote]:
        votes: VoteQuerySet = super().get_queryset(request)
        mine = where_role(request.user, Role.SME, "answer__knowledge_base")
        return votes.visible_to(request.user).filter(mine)

    @admin.action(description="Mark as dealt with", permissions=["handle"])
    def handle(self, request: HttpRequest, chosen: QuerySet[Vote]) -> None:
        count = handle_votes(chosen, by=caller(request))
        self._tell(request, count, "marked as dealt with")

    @admin.action(description="Open again", permissions=["handle"])
    def reopen(self, request: HttpRequest, chosen: QuerySet[Vote]) -> None:
        self._tell(request, reopen_votes(chosen), "opened again")

    @admin.action(description="Download as CSV", permissions=["view"])
    def export(
        self, _request: HttpRequest, chosen: QuerySet[Vote]
    ) -> StreamingHttpResponse:
        return csv_download(
            csv_lines(chosen.select_related("answer", "user", "handled_by")), "votes"
        )

    def _tell(self, request: HttpRequest, count: int, done: str) -> None:
        noun = "vote" if count == 1 else "votes"
        self.message_user(request, f"{count} {noun} {done}.", messages.SUCCESS)

    @display(
        description="thumb", ordering="is_up", label={"up": "success", "down": "danger"}
    )
    def thumb(self, vote: Vote) -> str:
        return "up" if vote.is_up else "down"

    reasons_said = column("what is wrong", lambda vote: ", ".join(vote.reason_words))

    @admin.display(description="comment")
    def says(self, vote: Vote) -> str:
        return _WITHHELD if vote.is_withheld and vote.comment else vote.comment

    @admin.display(description="expected answer")
    def expects(self, vote: Vote) -> str:
        is_hidden = vote.is_withheld and vote.expected_answer
        return _WITHHELD if is_hidden else vote.expected_answer

    @display(
        description="state",
        ordering="handled_at",
        label={"open": "warning", "handled": "success"},
    )
    def state(self, vote: Vote) -> tuple[str, str]:
        if vote.handled_at is None:
            return "open", "open"
        by = f" by {person_name(vote.handled_by)}" if vote.handled_by else ""
        return "handled", f"dealt with{by}"

    @admin.display(description="answered by")
    def answers_it(self, vote: Vote) -> SafeString | str:
        entry = vote.shown_answering_entry
        return link_to_entry(entry, f"entry {entry}") if entry else "-"


@admin.register(ConfidenceMove)
class ConfidenceMoveAdmin(ReadOnlyAdmin):
    """The ledger of confidence changes by votes, and of their undoing."""

    when_empty = "Enriched entries with a confidence changed by votes are listed here."
    list_display: ClassVar = [
        "when", "entry_said", "what", "prior_shown", "moved", "up_shown", "down_shown",
        "raters", "by",
    ]  # fmt: skip
    list_display_links = ["when"]
    list_filter = ["is_undo", "at"]
    list_select_related = ["entry", "by"]
    actions: ClassVar = ["undo"]
    has_undo_permission = holders_of(Role.CURATOR)
    fields: ClassVar = [
        "entry_said", "what", "prior_shown", "moved", "up_shown", "down_shown", "raters",
        "by", "reason", "when",
    ]  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[ConfidenceMove]:
        rows: QuerySet[ConfidenceMove] = super().get_queryset(request)
        visible = Entry.objects.visible_to(request.user)
        unread = ("entry__search_vector",)
        return rows.filter(entry__in=visible.values("pk")).defer(*unread)

    @admin.action(
        description="Undo: restore the confidence without votes", permissions=["undo"]
    )
    def undo(self, request: HttpRequest, chosen: QuerySet[ConfidenceMove]) -> None:
        entries = Entry.objects.filter(pk__in=chosen.values("entry")).order_by("pk")
        undo = partial(undo_moves, by=caller(request))
        change_each(
            self, request, entries, undo, "restored to the confidence without votes"
        )

    when = column("when", lambda move: f"{move.at:%Y-%m-%d %H:%M}", ordering="at")

    @admin.display(description="entry")
    def entry_said(self, move: ConfidenceMove) -> SafeString:
        return link_to_entry(move.entry_id, move.entry.said)

    @display(
        description="what",
        ordering="is_undo",
        label={"raised": "success", "lowered": "warning", "undone": "info"},
    )
    def what(self, move: ConfidenceMove) -> str:
        if move.is_undo:
            return "undone"
        return "raised" if move.after > move.before else "lowered"

    @admin.display(description="without votes", ordering="prior")
    def prior_shown(self, move: ConfidenceMove) -> str:
        return f"{move.prior:.2f}"

    @admin.display(description="confidence")
    def moved(self, move: ConfidenceMove) -> str:
        return f"{move.before:.2f} → {move.after:.2f}".replace(
            " ", "\N{NO-BREAK SPACE}"
        )

    up_shown = column("weight for", lambda move: f"{move.up:.1f}")
    down_shown = column("weight against", lambda move: f"{move.down:.1f}")
