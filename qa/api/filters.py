"""What lists may be narrowed by; a filter that can't be read is refused, never ignored."""

from typing import Any

import django_filters
from django import forms
from drf_spectacular.utils import extend_schema_field

from qa.models import Answer, DriftReading, Policy
from qa.pipeline.gates import Gate, Reason


class _NonEmptyForm(forms.Form):
    def clean(self) -> dict[str, Any]:
        for name in self.fields:
            if self.data.get(name) == "":
                self.add_error(name, "This filter is empty; leave it out.")
        return self.cleaned_data


@extend_schema_field({"type": "boolean"})
class _TruthFilter(django_filters.TypedChoiceFilter):
    pass


class AnswerFilter(django_filters.FilterSet):
    """By what became of a question, and when it was asked."""

    outcome = django_filters.ChoiceFilter(choices=Answer.Outcome.choices)
    gate = django_filters.ChoiceFilter(choices=[(g.value, g.value) for g in Gate])
    reason = django_filters.ChoiceFilter(
        field_name="shown_reason", choices=[(r.value, r.value) for r in Reason]
    )
    created_after = django_filters.IsoDateTimeFilter("created_at", "gte")
    created_before = django_filters.IsoDateTimeFilter("created_at", "lt")

    class Meta:
        model = Answer
        fields: list[str] = []
        form = _NonEmptyForm


class PolicyFilter(django_filters.FilterSet):
    """By whether it decides questions now."""

    is_active = _TruthFilter(
        choices=[("true", "true"), ("false", "false")],
        coerce=lambda value: value == "true",
    )

    class Meta:
        model = Policy
        fields: list[str] = []
        form = _NonEmptyForm


class DriftFilter(django_filters.FilterSet):
    """By whether something has drifted."""

    has_drifted = _TruthFilter(
        choices=[("true", "true"), ("false", "false")],
        coerce=lambda value: value == "true",
    )

    class Meta:
        model = DriftReading
        fields: list[str] = []
        form = _NonEmptyForm
