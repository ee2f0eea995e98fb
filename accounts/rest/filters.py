"""Filters of lists over REST; an invalid value is refused, never ignored."""

from datetime import UTC, datetime
from typing import Any

import django_filters
from django import forms
from django_filters.fields import IsoDateTimeField
from drf_spectacular.utils import extend_schema_field

from accounts.exceptions import first_of

from .fields import MAX_REPORTED, MAX_SHOWN

_BOOLEANS = [("true", "true"), ("false", "false")]


class NonEmptyForm(forms.Form):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for field in self.fields.values():
            if isinstance(field, forms.ChoiceField) and not isinstance(
                field, forms.ModelChoiceField
            ):
                choices: Any = field.choices
                known = [str(value) for value, _ in choices if value != ""]
                listed = first_of(known, MAX_REPORTED).replace("%", "%%")
                field.error_messages["invalid_choice"] = (
                    f"%(value).{MAX_SHOWN}s is not a valid choice; there are: {listed}."
                )

    def clean(self) -> dict[str, Any]:
        for name in self.fields:
            if name in self.data and not self.data[name].strip():
                self.add_error(name, "This filter is empty; leave it out.")
        return self.cleaned_data


class StrictFilterSet(django_filters.FilterSet):
    """The declared filters of a list, which refuse empty and invalid values."""

    class Meta:
        form = NonEmptyForm


@extend_schema_field({"type": "boolean"})
class BooleanFilter(django_filters.TypedChoiceFilter):
    """A filter by true or false; the library's own ignores any other value."""

    def __init__(self, field_name: str | None = None, **options: Any) -> None:
        options.setdefault("coerce", lambda value: value == "true")
        super().__init__(field_name, choices=_BOOLEANS, **options)


class IsSetFilter(BooleanFilter):
    def __init__(self, field_name: str, **options: Any) -> None:  # the library's
        options |= {"lookup_expr": "isnull", "coerce": lambda value: value != "true"}
        super().__init__(field_name, **options)


class _MomentField(IsoDateTimeField):
    def clean(self, value: object) -> datetime | None:
        moment: datetime | None = super().clean(value)
        try:
            return moment and moment.astimezone(UTC)
        except OverflowError as error:
            raise forms.ValidationError(
                f"{value} is outside the years 1 to 9999 in UTC; send a time within."
            ) from error


class MomentFilter(django_filters.IsoDateTimeFilter):
    """A filter by date and time, limited to the years 1 to 9999 in UTC."""

    field_class = _MomentField


@extend_schema_field({"type": "string", "minLength": 1})
class SlugFilter(django_filters.CharFilter):
    """A filter by a row's slug or name."""
