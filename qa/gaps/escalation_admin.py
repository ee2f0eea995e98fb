from typing import ClassVar

from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.timesince import timesince

from accounts.admin_parts import EstimatingPaginator
from accounts.base_admin import Fieldsets, badge
from accounts.people import person_name
from accounts.queue_admin import QueueFormAdmin
from accounts.roles import Role, where_role
from kb.entries.models import Entry
from qa.answers.admin import AnswerColumns, link_to_entry
from qa.answers.models import Answer
from qa.gaps.escalation_models import Escalation
from qa.gaps.escalations import assign

from .expert_form import is_curator_of, link_to_page
from .forms import ReplyForm

_STATES = {"open": "warning", "answered": "success", "closed": "info"}


@admin.register(Escalation)
class EscalationAdmin(AnswerColumns, QueueFormAdmin):
    """Escalated questions with their replies; open ones first, the oldest first."""

    form = ReplyForm
    when_empty = "Refused questions that agents send to experts are listed here."
    shown_state = badge("state", _STATES)
    list_display: ClassVar = [
        "question", "shown_state", "asked_by", "note", "waiting", "assignee",
        "created_at",
    ]  # fmt: skip
    list_filter: ClassVar = ["state", "answer__knowledge_base", "created_at"]
    paginator = EstimatingPaginator
    list_select_related = ["answer", "raised_by", "assignee"]
    list_per_page = 25
    search_fields = ["answer__question"]
    searched_person = "raised_by"
    ordering: ClassVar = ["-state", "created_at"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Escalation]:
        # Leave out escalations that the user raised in knowledge bases where others
        # reply.
        mine = where_role(request.user, Role.SME, "answer__knowledge_base")
        return super().get_queryset(request).filter(mine)

    def assign_to(self, user: User | None, key: int, *, by: User) -> Escalation:
        return assign(key, to=user, by=by)

    def get_fieldsets(
        self, request: HttpRequest, obj: Escalation | None = None
    ) -> Fieldsets:
        asked = ["asked", "asked_by", "note", "created_at", "assignee"]
        if obj is not None and obj.is_open:
            reply = ["said", "how", "entry", "words", "keep", "audience"]
            reply += ["verify"] if is_curator_of(request.user, obj) else []
        else:
            reply = ["state", "reply", "replied_by", "replied_at", "kept_as"]
        return [
            (None, {"fields": asked}),
            ("Reply", {"fields": reply}),
            ("How it was decided", {"fields": ["decision", "gates"]}),
            ("What was found", {"fields": ["pieces"]}),
        ]

    def outcome(self, row: Escalation) -> str:  # type: ignore[override]  # its own rows
        who = person_name(row.raised_by) or "The asker"
        if row.state == Escalation.State.CLOSED:
            return f"{who} reads why there is no answer."
        if row.entry is None:
            return f"{who} reads your reply. It is not kept as an entry."
        if row.entry.state == Entry.State.VERIFIED:
            said = "{} reads your reply. The question is asked again, with {} to answer it."
        else:
            said = (
                "{} reads your reply. It is kept as {}, and answers others once a curator "
                "has verified it."
            )
        return format_html(said, who, link_to_page(row.entry_id))

    @admin.display(description="asked by", ordering="raised_by__username")
    def asked_by(self, escalation: Escalation) -> str:
        return person_name(escalation.raised_by)

    @admin.display(description="waiting", ordering="-created_at")
    def waiting(self, escalation: Escalation) -> str:
        until = escalation.replied_at or timezone.now()
        return timesince(escalation.created_at, until, depth=1)

    @admin.display(description="entry")
    def kept_as(self, escalation: Escalation) -> str:
        if escalation.entry_id is None:
            return "none"
        return link_to_entry(escalation.entry_id)

    @admin.display(description="result")
    def decision(self, escalation: Escalation) -> str:
        answer = escalation.answer
        if answer.outcome == Answer.Outcome.ANSWERED:
            return f"answered: {answer.shown_text}"
        return f"refused by {answer.gate}: {answer.readable_reason}".replace("_", " ")
