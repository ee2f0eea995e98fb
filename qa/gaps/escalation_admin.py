from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.widgets import (
    UnfoldAdminRadioSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldBooleanSwitchWidget,
)

from accounts.admin_parts import EstimatingPaginator, change_each
from accounts.roles import Role, caller, has_role
from qa.answers.admin import (
    evidence_table,
    gates_table,
    link_to,
    link_to_entry,
    shortened,
)
from qa.answers.models import fetch_evidence
from qa.gaps.escalation_models import Escalation, EscalationQuerySet
from qa.gaps.escalations import REPLY_LIMIT, close, release, reply, take

from .forms import KeptForm

_STATES = {"open": "warning", "answered": "success", "closed": "info"}
_ANSWER, _CLOSE = "answer", "close"


class ReplyForm(KeptForm):
    """An expert's reply."""

    said = forms.CharField(
        label="Reply",
        max_length=2 * REPLY_LIMIT,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 5}),
        help_text="The asker reads it as it stands.",
    )
    how = forms.ChoiceField(
        label="What it is",
        choices=[(_ANSWER, "the answer"), (_CLOSE, "why there is no answer")],
        initial=_ANSWER,
        widget=UnfoldAdminRadioSelectWidget,
    )
    keep = forms.BooleanField(
        label="Keep the answer as an entry",
        required=False,
        initial=True,
        widget=UnfoldBooleanSwitchWidget,
        help_text="Question and answer, word for word; it waits for review.",
    )

    class Meta:
        model = Escalation
        fields: ClassVar[list[str]] = []

    def clean(self) -> dict[str, Any]:
        given = self.cleaned_data
        if self._keeps and not given.get("audience") and "audience" not in self.errors:
            self.add_error("audience", "Choose who may see the entry, or keep none.")
        return super().clean()

    def write(self) -> Escalation:
        """Reply, or close without an answer."""
        given = self.cleaned_data
        if given["how"] == _CLOSE:
            return close(self.instance.pk, by=self.user, reason=given["said"])
        keep = self.kept if self._keeps else None
        return reply(self.instance.pk, by=self.user, text=given["said"], keep=keep)

    @property
    def _keeps(self) -> bool:
        given = self.cleaned_data
        return bool(given.get("keep")) and given.get("how") == _ANSWER


@admin.register(Escalation)
class EscalationAdmin(ModelAdmin):  # type: ignore[misc]  # unfold ships no types
    """Refused questions that wait for an expert, the longest first, and what came back."""

    form = ReplyForm
    list_display: ClassVar = [
        "question", "shown_state", "asked_by", "note", "waits", "assignee", "created_at",
    ]  # fmt: skip
    list_filter: ClassVar = ["state", "answer__knowledge_base", "created_at"]
    paginator = EstimatingPaginator
    list_select_related = ["answer", "raised_by", "assignee"]
    list_per_page = 25
    show_full_result_count = False
    search_fields = ["answer__question", "raised_by__username"]
    ordering: ClassVar = ["-state", "created_at"]
    actions: ClassVar = ["take", "release"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Escalation]:
        escalations: EscalationQuerySet = super().get_queryset(request)
        return escalations.visible_to(request.user)

    def get_fieldsets(
        self, request: HttpRequest, obj: Escalation | None = None
    ) -> list[tuple[str | None, dict[str, Any]]]:
        asked = ["asked", "asked_by", "note", "created_at", "assignee"]
        if obj is not None and obj.state == Escalation.State.OPEN:
            said = ["said", "how", "keep", "audience"]
            said += ["verify"] if has_role(request.user, Role.CURATOR) else []
        else:
            said = ["state", "reply", "replied_by", "replied_at", "kept_as"]
        return [
            (None, {"fields": asked}),
            ("Reply", {"fields": said}),
            ("How it was refused", {"fields": ["refusal", "gates"]}),
            ("What was found", {"fields": ["pieces"]}),
        ]

    def get_readonly_fields(
        self, request: HttpRequest, obj: Escalation | None = None
    ) -> list[str]:
        named = [
            name
            for _, options in self.get_fieldsets(request, obj)
            for name in options["fields"]
        ]
        return [name for name in named if name not in ReplyForm.declared_fields]

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Escalation | None:
        found: Escalation | None = super().get_object(request, object_id, from_field)
        if found is not None:
            fetch_evidence(found.answer, request.user)
        return found

    def get_form(
        self,
        request: HttpRequest,
        obj: Escalation | None = None,
        change: bool = False,
        **options: Any,  # noqa: ANN401  # Django's
    ) -> type[ReplyForm]:
        return type("ReplyFormOfUser", (ReplyForm,), {"user": caller(request)})

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_view_permission(
        self, request: HttpRequest, obj: Escalation | None = None
    ) -> bool:
        return has_role(request.user, Role.SME)

    def has_change_permission(
        self, request: HttpRequest, obj: Escalation | None = None
    ) -> bool:
        is_open = obj is None or obj.state == Escalation.State.OPEN
        return has_role(request.user, Role.SME) and is_open

    def has_delete_permission(
        self, request: HttpRequest, obj: Escalation | None = None
    ) -> bool:
        return False

    def save_model(
        self, request: HttpRequest, obj: Escalation, form: ReplyForm, change: bool
    ) -> None:
        form.write()
        obj.refresh_from_db()

    @admin.action(description="Take: I work on it", permissions=["change"])
    def take(self, request: HttpRequest, chosen: QuerySet[Escalation]) -> None:
        """Assign the chosen ones to the user."""
        user = caller(request)
        change_each(self, request, chosen, lambda key: take(key, by=user), "taken")

    @admin.action(description="Give back", permissions=["change"])
    def release(self, request: HttpRequest, chosen: QuerySet[Escalation]) -> None:
        """Assign the chosen ones to nobody."""
        user = caller(request)
        change_each(
            self, request, chosen, lambda key: release(key, by=user), "given back"
        )

    @admin.display(description="question", ordering="answer__question")
    def question(self, escalation: Escalation) -> str:
        """Show what was asked, shortened."""
        return shortened(escalation.answer.question)

    @admin.display(description="question")
    def asked(self, escalation: Escalation) -> SafeString:
        """Show what was asked, with the way to the answer's own page."""
        return link_to(escalation.answer)

    @admin.display(description="asked by", ordering="raised_by__username")
    def asked_by(self, escalation: Escalation) -> str:
        by = escalation.raised_by
        return (by.get_full_name() or by.get_username()) if by else ""

    @display(description="state", ordering="state", label=_STATES)  # type: ignore[untyped-decorator]  # unfold ships no types
    def shown_state(self, escalation: Escalation) -> tuple[str, str]:
        return escalation.state, escalation.get_state_display()

    @admin.display(description="waits for", ordering="-created_at")
    def waits(self, escalation: Escalation) -> str:
        """Show how long the asker waits, or waited."""
        until = escalation.replied_at or timezone.now()
        hours = (until - escalation.created_at).total_seconds() / 3600
        return f"{hours / 24:.0f} days" if hours >= 48 else f"{hours:.1f} h"

    @admin.display(description="entry")
    def kept_as(self, escalation: Escalation) -> str:
        """Show what the reply became."""
        if escalation.entry_id is None:
            return "none"
        return link_to_entry(escalation.entry_id)

    @admin.display(description="reason")
    def refusal(self, escalation: Escalation) -> str:
        """Show which gate refused, and why."""
        answer = escalation.answer
        return f"{answer.gate}: {answer.reason}".replace("_", " ")

    @admin.display(description="signals")
    def gates(self, escalation: Escalation) -> SafeString:
        """Show every measured number beside its threshold."""
        return gates_table(escalation.answer)

    @admin.display(description="near misses")
    def pieces(self, escalation: Escalation) -> SafeString:
        """Show what was found as it was measured."""
        return evidence_table(escalation.answer)
