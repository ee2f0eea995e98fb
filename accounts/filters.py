"""Filters of lists over REST; one that can't be read is refused, never ignored."""

from typing import Any

import django_filters
from django import forms
from drf_spectacular.utils import extend_schema_field

_BOOLEANS = [("true", "true"), ("false", "false")]


class NonEmptyForm(forms.Form):
    """Refuses filters that are named without a value."""

    def clean(self) -> dict[str, Any]:
        for name in self.fields:
            if self.data.get(name) == "":
                self.add_error(name, "This filter is empty; leave it out.")
        return self.cleaned_data


class StrictFilterSet(django_filters.FilterSet):
    """The declared filters of a list, each refused where it is empty or can't be read."""

    class Meta:
        form = NonEmptyForm


@extend_schema_field({"type": "boolean"})
class BooleanFilter(django_filters.TypedChoiceFilter):
    """true or false; the library's own takes anything and ignores what it can't read."""

    def __init__(self, field_name: str | None = None, **options: Any) -> None:  # noqa: ANN401  # the library's
        options.setdefault("coerce", lambda value: value == "true")
        super().__init__(field_name, choices=_BOOLEANS, **options)


class IsSetFilter(BooleanFilter):
    """Whether a nullable field has a value."""

    def __init__(self, field_name: str) -> None:
        super().__init__(
            field_name, lookup_expr="isnull", coerce=lambda value: value != "true"
        )


@extend_schema_field({"type": "string", "minLength": 1})
class SlugFilter(django_filters.CharFilter):
    """A row by its slug or name."""
