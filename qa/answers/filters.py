"""What lists may be narrowed by; a filter that can't be read is refused, never ignored."""

from typing import Any

import django_filters
from django import forms
from drf_spectacular.utils import extend_schema_field

from kb.interface.api import TagFilter
from kb.tags.models import Tag
from qa.answers.models import Answer
from qa.calibration.models import DriftReading
from qa.gaps.escalation_models import Escalation, Notice
from qa.gaps.models import Gap
from qa.pipeline.gates import Gate, Reason
from qa.policies.models import Policy
from qa.reviews.models import Review
from qa.votes.models import Vote


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
    product_line = TagFilter(Tag.Facet.PRODUCT_LINE)
    line_of_business = TagFilter(Tag.Facet.LINE_OF_BUSINESS)
    created_after = django_filters.IsoDateTimeFilter("created_at", "gte")
    created_before = django_filters.IsoDateTimeFilter("created_at", "lt")

    class Meta:
        model = Answer
        fields: list[str] = []
        form = _NonEmptyForm


@extend_schema_field({"type": "string", "minLength": 1})
class _SlugFilter(django_filters.CharFilter):
    pass


@extend_schema_field({"type": "string", "enum": ["up", "down"]})
class _RatingFilter(django_filters.TypedChoiceFilter):
    pass


@extend_schema_field({"type": "string", "enum": list(Vote.Reason.values)})
class _VoteReasonFilter(django_filters.TypedChoiceFilter):
    pass


class VoteFilter(django_filters.FilterSet):
    """By what was said, of what, and whether somebody dealt with it."""

    rating = _RatingFilter(
        field_name="is_up",
        choices=[("up", "up"), ("down", "down")],
        coerce=lambda value: value == "up",
    )
    vote_reason = _VoteReasonFilter(
        field_name="reasons",
        lookup_expr="contains",
        choices=Vote.Reason.choices,
        coerce=lambda value: [value],
    )
    is_handled = _TruthFilter(
        field_name="handled_at",
        lookup_expr="isnull",
        choices=[("true", "true"), ("false", "false")],
        coerce=lambda value: value != "true",
    )
    outcome = django_filters.ChoiceFilter(
        field_name="answer__outcome", choices=Answer.Outcome.choices
    )
    gate = django_filters.ChoiceFilter(
        field_name="answer__gate", choices=[(g.value, g.value) for g in Gate]
    )
    knowledge_base = _SlugFilter("answer__knowledge_base__slug")
    created_after = django_filters.IsoDateTimeFilter("created_at", "gte")
    created_before = django_filters.IsoDateTimeFilter("created_at", "lt")

    class Meta:
        model = Vote
        fields: list[str] = []
        form = _NonEmptyForm


class EscalationFilter(django_filters.FilterSet):
    """By whether an expert replied."""

    state = django_filters.ChoiceFilter(choices=Escalation.State.choices)

    class Meta:
        model = Escalation
        fields: list[str] = []
        form = _NonEmptyForm


class GapFilter(django_filters.FilterSet):
    """By how far it is from being answered, where, and who works on it."""

    state = django_filters.ChoiceFilter(choices=Gap.State.choices)
    knowledge_base = _SlugFilter("knowledge_base__slug")
    owner = _SlugFilter("owner__username")

    class Meta:
        model = Gap
        fields: list[str] = []
        form = _NonEmptyForm


class NoticeFilter(django_filters.FilterSet):
    """By whether it was read."""

    is_read = _TruthFilter(
        field_name="read_at",
        lookup_expr="isnull",
        choices=[("true", "true"), ("false", "false")],
        coerce=lambda value: value != "true",
    )

    class Meta:
        model = Notice
        fields: list[str] = []
        form = _NonEmptyForm


class ReviewFilter(django_filters.FilterSet):
    """By who is to act, of what, and what was judged."""

    state = django_filters.ChoiceFilter(choices=Review.State.choices)
    tag = _SlugFilter("tag__slug")
    outcome = django_filters.ChoiceFilter(
        field_name="answer__outcome", choices=Answer.Outcome.choices
    )
    knowledge_base = _SlugFilter("answer__knowledge_base__slug")
    reviewed_after = django_filters.IsoDateTimeFilter("reviewed_at", "gte")
    reviewed_before = django_filters.IsoDateTimeFilter("reviewed_at", "lt")

    class Meta:
        model = Review
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
