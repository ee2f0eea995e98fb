from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from accounts.admin_parts import (
    EstimatingPaginator,
    FixedRowsAdmin,
    change_each,
    form_page,
    tell_of_job,
)
from accounts.base_admin import Fieldsets, action, badge, holders_of
from accounts.roles import caller
from accounts.undo import offer_undo
from kb.enrichment.background import start_enrichment
from kb.enrichment.models import Proposal
from kb.enrichment.proposals import Decision, decide
from kb.entries.models import Entry
from kb.interface.admin import InBaseAdmin
from kb.upkeep.undoing import EACH as UNDO_EACH
from kb.upkeep.undoing import KIND as UNDO
from kb.upkeep.undoing import undoable, undoable_each

from .admin_forms import DECISIONS, DecisionForm, EnrichmentForm, take_seeds


def _list_action(decision: Decision) -> Callable[..., None]:
    menu, done = DECISIONS[decision]

    @admin.action(description=menu, permissions=["change"])
    def act(
        model_admin: FixedRowsAdmin, request: HttpRequest, chosen: QuerySet[Proposal]
    ) -> None:
        by, rows = caller(request), chosen.order_by("pk")
        entries = dict(rows.values_list("pk", "entry_id"))

        def one(key: int) -> Mapping[str, Any]:
            change = partial(decide, key, by=by, decision=decision)
            return undoable_each(change, entries[key], by=by)[1]

        change_each(model_admin, request, rows, one, done, "proposal", undo=UNDO_EACH)

    act.__name__ = decision
    return act


@admin.register(Proposal)
class ProposalAdmin(InBaseAdmin, FixedRowsAdmin):
    form = DecisionForm
    when_empty = (
        "Entries that the language model proposes are listed here for curators to "
        "decide."
    )
    list_display: ClassVar = [
        "sentence", "shown_question", "shown_confidence", "shown_state", "model_name",
        "created_at",
    ]  # fmt: skip
    list_filter: ClassVar = ["state", "knowledge_base"]
    list_select_related: ClassVar = ["entry"]
    paginator = EstimatingPaginator
    # A filter by model would scan all proposals, usually to list a single model.
    search_fields: ClassVar = ["question", "sentence", "=model_name"]
    search_help_text = "Words of the question or the sentence, or a model's whole name"
    ordering: ClassVar[list[Any]] = [
        F("decided_at").desc(nulls_first=True),
        "-confidence",
        "-pk",
    ]
    actions: ClassVar = [_list_action(decision) for decision in DECISIONS]
    actions_list: ClassVar = ["propose"]
    has_propose_permission = holders_of("kb.change_proposal")
    shown_state = badge(
        "state",
        {
            Proposal.State.PROPOSED: "info",
            Proposal.State.APPROVED: "success",
            Proposal.State.EDITED: "success",
            Proposal.State.REJECTED: "danger",
        },
    )
    _facts: ClassVar = [
        "question", "answer", "sentence", "seed_question", "shown_confidence",
        "known_near", "state", "shown_entry",
    ]  # fmt: skip
    _record: ClassVar = [
        "knowledge_base", "model_name", "model_fingerprint", "prompt_version",
        "random_seed", "shown_job", "created_at", "decided_by", "decided_at", "reason",
    ]  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Proposal]:
        return Proposal.objects.visible_to(request.user).order_by(*self.ordering)

    def get_fieldsets(
        self, request: HttpRequest, obj: Proposal | None = None
    ) -> Fieldsets:
        decision = [("Decision", {"fields": ["text", "decision", "why"]})]
        is_open = obj is not None and self.has_change_permission(request, obj)
        return [
            (None, {"fields": self._facts}),
            *(decision if is_open else []),
            ("Record", {"fields": self._record}),
        ]

    def get_readonly_fields(
        self, request: HttpRequest, obj: Proposal | None = None
    ) -> list[str]:
        return [*self._facts, *self._record]

    def may_touch(self, request: HttpRequest, row: Proposal) -> bool:
        return row.state == Proposal.State.PROPOSED and super().may_touch(request, row)

    def save_model(
        self, request: HttpRequest, obj: Proposal, form: DecisionForm, change: bool
    ) -> None:
        by = caller(request)
        _, before = undoable(lambda: form.decide(by=by), obj.entry_id, by=by)
        obj.refresh_from_db()
        done = DECISIONS[form.cleaned_data["decision"]][1]
        offer_undo(
            request,
            f"{done.capitalize()}: {obj}",
            kind=UNDO,
            before=before,
            back=reverse("admin:kb_proposal_change", args=[obj.pk]),
        )

    def log_change(self, request: HttpRequest, obj: Proposal, message: object) -> None:
        """Log nothing: the proposal itself records the decision."""

    @action(description="Let the model propose", permissions=["propose"])
    def propose(self, request: HttpRequest) -> HttpResponse:
        form = EnrichmentForm(
            request.POST or None, user=caller(request), initial=take_seeds(request)
        )
        if request.method == "POST" and form.is_valid():
            job = start_enrichment(form.plan, by=caller(request))
            said = 'The model is writing; <a href="{}">the job</a> shows how far it is.'
            return tell_of_job(self, request, said, job.pk)
        intro = (
            "The language model answers questions similar to the seeds. Its proposals "
            "are not used in answers until a curator has approved them, unless the "
            "policy allows it."
        )
        return form_page(self, request, form, "Let the model propose", intro=intro)

    @admin.display(description="question and answer", ordering="question")
    def shown_question(self, proposal: Proposal) -> str:
        return f"{proposal.question} {proposal.answer}"

    @admin.display(description="confidence", ordering="confidence")
    def shown_confidence(self, proposal: Proposal) -> str:
        likely = "-" if proposal.likelihood is None else f"{proposal.likelihood:.2f}"
        return (
            f"{proposal.confidence:.2f} (says {proposal.stated:.2f}, agrees "
            f"{proposal.agreement:.2f}, likely {likely})"
        )

    @admin.display(description="entry")
    def shown_entry(self, proposal: Proposal) -> SafeString:
        number = proposal.entry_id
        address = reverse("admin:kb_entry_change", args=[number])
        return format_html('<a href="{}">entry {}</a>', address, number)

    @admin.display(description="job")
    def shown_job(self, proposal: Proposal) -> SafeString | str:
        if proposal.job_id is None:
            return "-"
        address = reverse("admin:jobs_job_change", args=[proposal.job_id])
        return format_html('<a href="{}">job</a>', address)

    @admin.display(description="known already, nearest first")
    def known_near(self, proposal: Proposal) -> SafeString | str:
        distances = {int(pk): float(distance) for pk, distance in proposal.nearest}
        visible = Entry.objects.visible_to(proposal.seen_by).in_bulk(list(distances))
        rows = [
            (
                reverse("admin:kb_entry_change", args=[pk]),
                visible[pk].text[:200],
                f"{distance:.2f}",
            )
            for pk, distance in distances.items()
            if pk in visible
        ]
        shown = format_html_join(
            "", '<div><a href="{}">{}</a> (distance {})</div>', rows
        )
        return shown or "nothing"

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Proposal | None:
        found: Proposal | None = super().get_object(request, object_id, from_field)
        if found is not None:
            found.seen_by = request.user
        return found
