"""Seeds for enrichment, handed from one page of the admin to the form of another."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from unfold.widgets import UnfoldAdminRadioSelectWidget, UnfoldAdminTextareaWidget

from accounts.admin_parts import StyledForm, field_errors, style
from kb.audiences.models import Audience
from kb.documents.models import KnowledgeBase
from kb.enrichment.background import checked
from kb.enrichment.models import Proposal
from kb.enrichment.proposals import Decision, Plan, decide
from kb.enrichment.services import MAX_PER_SEED, MAX_PROPOSALS
from kb.entries.values import REASON_LIMIT, clean_reason
from kb.exceptions import InvalidKnowledgeError
from kb.interface.admin import bases_curated_by
from kb.text.cleaning import TEXT_LIMIT, clean_said

_KEPT = "enrichment_seeds"


def to_seeds(
    request: HttpRequest, seeds: Iterable[str], *, per_seed: int
) -> HttpResponse:
    lines = (" ".join(seed.split()) for seed in seeds)
    request.session[_KEPT] = {"seeds": "\n".join(lines), "per_seed": per_seed}
    return redirect("admin:kb_proposal_propose")


def take_seeds(request: HttpRequest) -> dict[str, object] | None:
    kept: dict[str, object] | None = request.session.pop(_KEPT, None)
    return kept


DECISIONS: Mapping[Decision, tuple[str, str]] = {
    "approve": ("Approve: in review, not verified", "approved"),
    "verify": ("Verify now", "verified"),
    "reject": ("Reject", "rejected"),
}
"""The label of each decision before and after it is made."""


class DecisionForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable when it runs
    text = forms.CharField(
        max_length=TEXT_LIMIT,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text="The text of the entry; the model's own text is kept with it.",
    )
    decision = forms.ChoiceField(
        choices=[(name, menu) for name, (menu, _) in DECISIONS.items()],
        widget=UnfoldAdminRadioSelectWidget,
    )
    why = forms.CharField(label="Reason", max_length=REASON_LIMIT, required=False)

    class Meta:
        model = Proposal
        fields: list[str] = []

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        style(self)
        if "text" in self.fields:
            self.fields["text"].initial = self.instance.sentence

    def clean_text(self) -> str:
        with field_errors():
            return clean_said("text", self.cleaned_data["text"])

    def clean_why(self) -> str:
        with field_errors():
            return clean_reason(self.cleaned_data["why"])

    def decide(self, *, by: User) -> Proposal:
        text = self.cleaned_data["text"]
        return decide(
            proposal_id=self.instance.pk,
            by=by,
            decision=self.cleaned_data["decision"],
            text=None if text == self.instance.sentence else text,
            reason=self.cleaned_data["why"],
        )


class EnrichmentForm(StyledForm):
    knowledge_base = forms.ModelChoiceField(KnowledgeBase.objects.order_by("name"))
    audience = forms.ModelChoiceField(
        Audience.objects.none(), help_text="Who may see the proposals."
    )
    seeds = forms.CharField(
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 10}),
        help_text="Questions or subjects, one per line.",
    )
    per_seed = forms.IntegerField(
        label="Questions from each seed",
        min_value=0,
        max_value=MAX_PER_SEED,
        initial=3,
        help_text="0 answers the seeds themselves.",
    )
    count = forms.IntegerField(
        label="Maximum number of proposals",
        min_value=1,
        max_value=MAX_PROPOSALS,
        initial=100,
    )

    plan: Plan

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, rows in (
            ("knowledge_base", bases_curated_by(user)),
            ("audience", Audience.objects.visible_to(user).order_by("name")),
        ):
            field: Any = self.fields[name]
            field.queryset = rows
            field.initial = rows.first()

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if self.errors:
            return cleaned
        try:
            seeds = cleaned["seeds"].splitlines()
            self.plan = checked(Plan(**{**cleaned, "seeds": seeds}))
        except InvalidKnowledgeError as error:
            self.add_error("seeds", str(error))
        return cleaned
