from pathlib import Path
from typing import Any

from django import forms
from django.conf import settings
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from accounts.exceptions import NescioError
from kb.models import KnowledgeBase
from qa.evaluation.policy_names import find_policy
from qa.evaluation.suites import suites


class EvaluationForm(forms.Form):
    """What is asked, of what, and by which thresholds."""

    suite = forms.ChoiceField(widget=UnfoldAdminSelectWidget)
    data_set = forms.CharField(
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="A file or directory below NESCIO_EVALUATION_DATA; empty for all of it.",
    )
    limit = forms.IntegerField(
        required=False,
        min_value=1,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="A seeded sample of so many questions; empty for all.",
    )
    knowledge_base = forms.ModelChoiceField(
        KnowledgeBase.objects.order_by("name"),
        required=False,
        to_field_name="slug",
        widget=UnfoldAdminSelectWidget,
        help_text="For suites that are asked against a knowledge base that is there.",
    )
    policy = forms.CharField(
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="NAME:VERSION; empty for the one that is active.",
    )
    shadow = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text="Let all gates measure and none refuse: one run for every ablation.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  # as forms are made
        super().__init__(*args, **kwargs)
        names = [(name, name) for name in sorted(suites())]
        self.fields["suite"].choices = names  # type: ignore[attr-defined]  # a ChoiceField

    def clean_data_set(self) -> str:
        """Keep to the directory that is meant for it, links followed."""
        named: str = self.cleaned_data["data_set"].strip()
        if not settings.EVALUATION_DATA:
            if named:
                raise forms.ValidationError(
                    "NESCIO_EVALUATION_DATA is not set, so that no file can be read."
                )
            return ""
        root = Path(settings.EVALUATION_DATA).resolve()
        path = (root / named).resolve()
        if not path.is_relative_to(root) or not path.exists():
            raise forms.ValidationError(f"There is no {named!r} below {root}.")
        return str(path)

    def clean_policy(self) -> str:
        """Refuse a version that is not there before a worker does."""
        named: str = self.cleaned_data["policy"].strip()
        if named:
            try:
                find_policy(named)
            except NescioError as error:
                raise forms.ValidationError(str(error)) from error
        return named

    def parameters(self) -> dict[str, object]:
        """Return the parameters of the job, without those that say nothing."""
        chosen = dict(self.cleaned_data)
        chosen["data"] = chosen.pop("data_set")
        base = chosen["knowledge_base"]
        given = {**chosen, "knowledge_base": base.slug if base else ""}
        return {name: value for name, value in given.items() if value}
