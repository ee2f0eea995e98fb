import json
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.admin_parts import EstimatingPaginator, ListFilter, ReadOnlyAdmin, table
from accounts.base_admin import column, display, holders_of
from kb.enrichment.admin_forms import to_seeds
from kb.enrichment.background import SEED_LIMIT
from kb.enrichment.services import MAX_SEEDS
from qa.answers.models import Answer, AnswerQuerySet, fetch_evidence, readable_reason
from qa.answers.view import shown_pieces, token_confidences
from qa.answers.waterfall import stage_times
from qa.answers.word_search import has_words, users_named

_SHOWN = 120
_PASSED = {True: "met", False: "not met", None: "recorded"}
_WITHHELD = "withheld: it was written from entries that you may not see"


class HasAnswer(Protocol):
    """A row about an answer: a vote, a review or an escalation."""

    @property
    def answer(self) -> Answer:
        """The answer that the row is about."""


def link_to_entry(entry_id: int | None, said: str = "") -> SafeString:
    return format_html(
        '<a class="text-primary-600 dark:text-primary-500" href="{}">{}</a>',
        reverse("admin:kb_entry_change", args=[entry_id]),
        said or f"entry {entry_id}",
    )


def gates_table(answer: Answer) -> SafeString:
    rows = (
        (
            signal["gate"].replace("_", " "),
            signal["name"].replace("_", " "),
            rounded(signal["value"]),
            rounded(signal["threshold"]),
            _PASSED[signal["passed"]],
        )
        for signal in answer.signals
    )
    return table(("gate", "measured", "value", "threshold", "result"), rows)


def evidence_table(answer: Answer) -> SafeString:
    """Return a table of an answer's evidence as measured; needs `fetch_evidence`."""
    rows = (
        (
            piece.row.get_role_display(),
            f"entry {piece.row.entry_id}, withheld from you"
            if piece.row.is_withheld or piece.row.revision is None
            else link_to_entry(piece.row.entry_id, piece.text[:200]),
            piece.document.title if piece.document else "",
            piece.quote,
            rounded(piece.row.distance),
            rounded(piece.row.confidence),
            rounded(piece.row.ratio),
        )
        for piece in shown_pieces(answer)
    )
    heads = ("role", "entry", "document", "quote", "distance", "confidence", "ratio")
    return table(heads, rows)


def shortened(question: str) -> str:
    return question if len(question) <= _SHOWN else f"{question[: _SHOWN - 1]}…"


def link_to(answer: Answer) -> SafeString:
    return format_html(
        '<a class="text-primary-600 dark:text-primary-500" href="{}">{}</a>',
        reverse("admin:qa_answer_change", args=[answer.pk]),
        answer.question,
    )


def rounded(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


class AnswerColumns:
    """Admin columns for the `answer` of a row, as far as the user may see it.

    Lists are searched for words of the question and for the user in `searched_person`.
    """

    searched_person: ClassVar[str]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        said = has_words(Answer.objects.all(), term, of="answer")
        by = Q(**{f"{self.searched_person}__in": users_named(term)})
        return queryset.filter(said | by), False

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        row = super().get_object(request, object_id, from_field)  # type: ignore[misc]  # ModelAdmin's
        if row is not None:
            fetch_evidence(row.answer, request.user)
        return row

    @admin.display(description="question", ordering="answer__question")
    def question(self, row: HasAnswer) -> str:
        return shortened(row.answer.question)

    asked = column("question", lambda row: link_to(row.answer))

    @display(
        description="outcome",
        ordering="answer__outcome",
        label={"answered": "success", "refused": "warning"},
    )
    def outcome(self, row: HasAnswer) -> str:
        return row.answer.outcome

    @admin.display(description="decided by", ordering="answer__gate")
    def gate(self, row: HasAnswer) -> str:
        return row.answer.gate.replace("_", " ")

    reason = column("reason", lambda row: row.answer.readable_reason.replace("_", " "))
    text = column("text", lambda row: row.answer.shown_text)
    gates = column("signals", lambda row: gates_table(row.answer))
    pieces = column("what was found", lambda row: evidence_table(row.answer))


def _readable(names: Sequence[Any], request: HttpRequest) -> list[Any]:
    """Replace "reason" in columns or filters by the field that the user may read."""
    field = readable_reason(request.user)
    return [field if name == "reason" else name for name in names]


class _AskedFilter(ListFilter):
    title = parameter_name = "asked"
    choices_by_value = {"live": "by people", "system": "by evaluations and repeats"}

    def narrow(
        self, rows: AnswerQuerySet, value: str, request: HttpRequest
    ) -> AnswerQuerySet:
        if value == "live":
            return rows.live()
        return rows.exclude(channel__in=Answer.LIVE_CHANNELS)


@admin.register(Answer)
class AnswerAdmin(ReadOnlyAdmin):
    """Every question with everything that decided it; read-only."""

    when_empty = "Every question is listed here, with how it was decided."
    list_display: ClassVar = [
        "question", "shown_outcome", "gate", "reason", "thumbs", "asker",
        "knowledge_base", "channel", "created_at",
    ]  # fmt: skip
    list_filter: ClassVar = [
        "outcome", "gate", "reason", _AskedFilter, "channel", "knowledge_base",
        "created_at", "votes__is_up",
    ]  # fmt: skip
    list_select_related = ["asker", "knowledge_base"]
    search_fields: ClassVar = ["question", "asker__username"]
    search_help_text = "Beginnings of words in the question, or who asked"
    list_per_page = 25
    paginator = EstimatingPaginator
    actions: ClassVar = ["propose"]
    fieldsets: ClassVar = [
        (None, {"fields": ["question", "shown_outcome", "words", "reasons"]}),
        ("How it was decided", {"fields": ["gates", "confidence_by_word", "times"]}),
        ("Evidence", {"fields": ["pieces"]}),
        ("Votes", {"fields": ["voters"]}),
        ("Record", {"fields": [
            "id", "typed_text", "conversation_id", "asker", "service", "channel", "knowledge_base",
            "language", "gate",
            "why_refused", "shown_reason", "policy", "calibration", "embedder",
            "language_model", "probes", "draft", "error", "created_at",
            "decided_at",
        ]}),
    ]  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Answer]:
        answers: AnswerQuerySet = super().get_queryset(request)
        return answers.visible_to(request.user).prefetch_related("votes__user")

    def get_list_display(self, request: HttpRequest) -> list[str]:
        return _readable(super().get_list_display(request), request)

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        return _readable(super().get_list_filter(request), request)

    has_propose_permission = holders_of("kb.change_proposal")

    @admin.action(
        description="Let the model propose answers to these", permissions=["propose"]
    )
    def propose(
        self, request: HttpRequest, chosen: QuerySet[Answer]
    ) -> HttpResponse | None:
        refused = chosen.filter(outcome=Answer.Outcome.REFUSED).order_by("-created_at")
        questions = list(
            dict.fromkeys(refused.values_list("question", flat=True)[:MAX_SEEDS])
        )
        if not questions:
            self.message_user(
                request,
                "None of these was refused; choose unanswered ones.",
                level=messages.WARNING,
            )
            return None
        return to_seeds(request, (text[:SEED_LIMIT] for text in questions), per_seed=0)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Answer], search_term: str
    ) -> tuple[QuerySet[Answer], bool]:
        if not search_term.strip() or not isinstance(queryset, AnswerQuerySet):
            return queryset, False
        askers = users_named(search_term.strip())
        in_text = request.user.is_superuser
        return queryset.with_words(search_term, in_text=in_text, askers=askers), False

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Answer | None:
        answer: Answer | None = super().get_object(request, object_id, from_field)
        if answer is not None:
            fetch_evidence(answer, request.user)
        return answer

    typed_text = column("typed", lambda answer: answer.typed_text)
    conversation_id = column("conversation", lambda answer: str(answer.conversation_id))
    why_refused = column("reason", lambda answer: answer.readable_reason)
    words = column("text", lambda answer: answer.shown_text)
    reasons = column("reasoning", lambda answer: answer.shown_reasoning)

    @admin.display(description="generation")
    def draft(self, answer: Answer) -> str:
        if answer.is_draft_withheld:
            return _WITHHELD
        return json.dumps(answer.generation, ensure_ascii=False)

    @display(
        description="outcome",
        ordering="outcome",
        label={
            "answered": "success",
            "refused": "warning",
            "pending": "info",
            "failed": "danger",
        },
    )
    def shown_outcome(self, answer: Answer) -> str:
        return answer.outcome

    @admin.display(description="votes")
    def thumbs(self, answer: Answer) -> str:
        ups = [vote.is_up for vote in answer.votes.all()]
        return f"{ups.count(True)} up, {ups.count(False)} down" if ups else ""

    gates = column("signals", lambda answer: gates_table(answer))

    @admin.display(description="confidence along the draft")
    def confidence_by_word(self, answer: Answer) -> str:
        if answer.is_draft_withheld:
            return _WITHHELD
        tokens = token_confidences(answer)
        if not tokens:
            return answer.confidence.get("missing", "") or "none"
        rows = ((token.text, rounded(token.confidence)) for token in tokens)
        return table(("written", "confidence after it"), rows)

    @admin.display(description="times")
    def times(self, answer: Answer) -> SafeString:
        """Show the stages as a waterfall: each bar starts where the last one ended."""
        rows = []
        for line in stage_times(answer.milliseconds):
            bar = format_html(
                '<div style="margin-left:{}%;width:{}%;min-width:2px;height:.75rem;'
                'background:var(--color-primary-600,#0b6663)"></div>',
                f"{line.bar.start:.1f}",
                f"{line.bar.width:.1f}",
            )
            rows.append((line.name, line.time, bar))
        return table(("stage", "time", "from start to end"), rows)

    pieces = column("what was found", lambda answer: evidence_table(answer))

    @admin.display(description="votes")
    def voters(self, answer: Answer) -> SafeString:
        rows = (
            (
                vote.user,
                "up" if vote.is_up else "down",
                ", ".join(vote.reason_words),
                *(
                    ("", "")
                    if answer.is_withheld
                    else (vote.comment, vote.expected_answer)
                ),
            )
            for vote in answer.votes.all()
        )
        return table(("user", "thumb", "reasons", "comment", "expected"), rows)
