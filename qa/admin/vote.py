from typing import ClassVar

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.safestring import SafeString
from unfold.decorators import display

from accounts.roles import Role, has_role
from kb.admin.caller import caller
from qa.api.votes import csv_response
from qa.models import Answer, Vote
from qa.models.answer import fetch_evidence
from qa.models.vote import VoteQuerySet
from qa.services.votes import handle_votes, reopen_votes

from .answer_tables import evidence_table, gates_table, link_to, shortened
from .paginator import EstimatingPaginator
from .read_only import ReadOnlyAdmin

_WITHHELD = "withheld: the answer cites entries that you may not see"


class _StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(
        self, _request: HttpRequest, _model_admin: object
    ) -> list[tuple[str, str]]:
        return [("open", "open"), ("handled", "dealt with")]

    def queryset(self, _request: HttpRequest, votes: QuerySet[Vote]) -> QuerySet[Vote]:
        if self.value() in ("open", "handled"):
            return votes.filter(handled_at__isnull=self.value() == "open")
        return votes


class _ReasonFilter(admin.SimpleListFilter):
    title = "what is wrong"
    parameter_name = "what"

    def lookups(
        self, _request: HttpRequest, _model_admin: object
    ) -> list[tuple[str, str]]:
        return [(reason.value, str(reason.label)) for reason in Vote.Reason]

    def queryset(self, _request: HttpRequest, votes: QuerySet[Vote]) -> QuerySet[Vote]:
        if self.value() in Vote.Reason.values:
            return votes.filter(reasons__contains=[self.value()])
        return votes


@admin.register(Vote)
class VoteAdmin(ReadOnlyAdmin):
    """The inbox of thumbs: what was said of which answer, and whether it was dealt with."""

    list_display: ClassVar = [
        "thumb", "question", "outcome", "gate", "reasons_said", "says", "user",
        "state", "updated_at",
    ]  # fmt: skip
    list_display_links: ClassVar = ["thumb", "question"]
    list_filter: ClassVar = [
        _StateFilter, "is_up", _ReasonFilter, "answer__outcome", "answer__gate",
        "answer__knowledge_base", "updated_at",
    ]  # fmt: skip
    list_select_related = ["answer", "user", "handled_by"]
    list_per_page = 25
    show_full_result_count = False
    paginator = EstimatingPaginator
    search_fields = ["answer__question", "user__username"]
    search_help_text = "Words of the question as they begin, or who voted"
    actions: ClassVar = ["handle", "reopen", "export"]
    fieldsets: ClassVar = [
        (
            None,
            {
                "fields": [
                    "thumb", "reasons_said", "says", "expects", "user", "created_at",
                    "updated_at", "state",
                ]
            },
        ),
        ("On", {"fields": ["asked", "outcome", "reason", "text"]}),
        ("How it was decided", {"fields": ["gates"]}),
        ("Evidence", {"fields": ["pieces"]}),
    ]  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Vote]:
        """Fetch votes on answers that may be looked up."""
        votes: VoteQuerySet = super().get_queryset(request)
        return votes.visible_to(request.user)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Vote], search_term: str
    ) -> tuple[QuerySet[Vote], bool]:
        """Search by the question's words, or by who voted."""
        term = search_term.strip()
        if not term:
            return queryset, False
        asked = Answer.objects.with_words(term).values("pk")
        said = Q(answer__in=asked) | Q(user__username__icontains=term)
        return queryset.filter(said), False

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Vote | None:
        """Fetch the answer's evidence as far as the user may read it."""
        vote: Vote | None = super().get_object(request, object_id, from_field)
        if vote is not None:
            fetch_evidence(vote.answer, request.user)
        return vote

    def get_readonly_fields(
        self, request: HttpRequest, obj: Vote | None = None
    ) -> list[str]:
        """Show everything as text."""
        return [name for _, options in self.fieldsets for name in options["fields"]]

    def has_handle_permission(self, request: HttpRequest) -> bool:
        """Who reviews answers deals with votes."""
        return has_role(request.user, Role.SME)

    @admin.action(description="Mark as dealt with", permissions=["handle"])
    def handle(self, request: HttpRequest, chosen: QuerySet[Vote]) -> None:
        """Close the chosen votes."""
        count = handle_votes(chosen, by=caller(request))
        self._tell(request, count, "marked as dealt with")

    @admin.action(description="Open again", permissions=["handle"])
    def reopen(self, request: HttpRequest, chosen: QuerySet[Vote]) -> None:
        """Undo that."""
        self._tell(request, reopen_votes(chosen), "opened again")

    @admin.action(description="Download as CSV", permissions=["view"])
    def export(
        self, _request: HttpRequest, chosen: QuerySet[Vote]
    ) -> StreamingHttpResponse:
        """Stream the chosen votes as a table."""
        return csv_response(chosen.select_related("answer", "user", "handled_by"))

    def _tell(self, request: HttpRequest, count: int, done: str) -> None:
        noun = "vote" if count == 1 else "votes"
        self.message_user(request, f"{count} {noun} {done}.", messages.SUCCESS)

    @display(  # type: ignore[untyped-decorator]  # unfold ships no types
        description="thumb",
        ordering="is_up",
        label={"up": "success", "down": "danger"},
    )
    def thumb(self, vote: Vote) -> str:
        """Show the thumb as a badge."""
        return "up" if vote.is_up else "down"

    @admin.display(description="question", ordering="answer__question")
    def question(self, vote: Vote) -> str:
        """Show what was asked, shortened."""
        return shortened(vote.answer.question)

    @admin.display(description="question")
    def asked(self, vote: Vote) -> SafeString:
        """Show what was asked, with the way to the answer's own page."""
        return link_to(vote.answer)

    @display(  # type: ignore[untyped-decorator]  # unfold ships no types
        description="outcome",
        ordering="answer__outcome",
        label={"answered": "success", "refused": "warning"},
    )
    def outcome(self, vote: Vote) -> str:
        """Show what was voted on."""
        return vote.answer.outcome

    @admin.display(description="decided by", ordering="answer__gate")
    def gate(self, vote: Vote) -> str:
        """Show which gate refused."""
        return vote.answer.gate.replace("_", " ")

    @admin.display(description="reason")
    def reason(self, vote: Vote) -> str:
        """Show the refusal's true reason."""
        return vote.answer.reason.replace("_", " ")

    @admin.display(description="what is wrong")
    def reasons_said(self, vote: Vote) -> str:
        """Show the voter's reasons."""
        return ", ".join(vote.reason_words)

    @admin.display(description="comment")
    def says(self, vote: Vote) -> str:
        """Show what the voter said."""
        return _WITHHELD if vote.is_withheld and vote.comment else vote.comment

    @admin.display(description="expected answer")
    def expects(self, vote: Vote) -> str:
        """Show what the voter would have said."""
        is_hidden = vote.is_withheld and vote.expected_answer
        return _WITHHELD if is_hidden else vote.expected_answer

    @display(  # type: ignore[untyped-decorator]  # unfold ships no types
        description="state",
        ordering="handled_at",
        label={"open": "warning", "handled": "success"},
    )
    def state(self, vote: Vote) -> tuple[str, str]:
        """Show who dealt with it, or that nobody did."""
        if vote.handled_at is None:
            return "open", "open"
        by = f" by {vote.handled_by.get_username()}" if vote.handled_by else ""
        return "handled", f"dealt with{by}"

    @admin.display(description="text")
    def text(self, vote: Vote) -> str:
        """Show what the asker read."""
        return vote.answer.shown_text

    @admin.display(description="signals")
    def gates(self, vote: Vote) -> SafeString:
        """Show every measured number beside its threshold."""
        return gates_table(vote.answer)

    @admin.display(description="what was found")
    def pieces(self, vote: Vote) -> SafeString:
        """Show the evidence and near misses as they were measured."""
        return evidence_table(vote.answer)
