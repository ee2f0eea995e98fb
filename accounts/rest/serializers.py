"""Serializers that refuse unknown keys, and errors that name the remedy."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from django.db import models
from rest_framework import serializers

from accounts.exceptions import first_of

from .fields import (
    MAX_REPORTED,
    MAX_SHOWN,
    StrictBooleanField,
    StrictCharField,
    StrictFloatField,
    StrictIntegerField,
)

Row = TypeVar("Row", bound=models.Model)


def unknown_names(
    unknown: Iterable[str], known: Iterable[str], noun: str
) -> serializers.ValidationError:
    """Return the error for unknown names, with the list of known ones."""
    listed = ", ".join(sorted(known)) or "none"
    return serializers.ValidationError(
        {
            name[:100]: [f"There is no such {noun}; there are: {listed}."]
            for name in sorted(unknown)[:MAX_REPORTED]
        }
    )


class StrictSerializer(serializers.Serializer[Any]):
    """A JSON object without unknown keys, so that a misspelt one is not ignored."""

    def to_internal_value(self, data: object) -> Any:
        if isinstance(data, Mapping):
            unknown = [str(key) for key in data.keys() - self.fields.keys()]
            if unknown:
                raise unknown_names(unknown, self.fields, "field")
            self._refuse_without(data)
        return super().to_internal_value(data)

    def _refuse_without(self, data: Mapping[str, object]) -> None:
        """Refuse a nested object that lacks a required field.

        REST framework treats fields left out of a PATCH as unchanged, but an element of
        a list does not change an existing one.
        """
        if self.root is self or not getattr(self.root, "partial", False):
            return
        needed = {name for name, field in self.fields.items() if field.required}
        if missing := sorted(needed - data.keys()):
            raise serializers.ValidationError(
                {name: self.fields[name].error_messages["required"] for name in missing}
            )


class StrictModelSerializer(StrictSerializer, serializers.ModelSerializer[Any]):
    """A JSON object of a model's fields, each strict about its JSON type."""

    serializer_field_mapping = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.CharField: StrictCharField,
        models.TextField: StrictCharField,
        models.PositiveIntegerField: StrictIntegerField,
        models.PositiveSmallIntegerField: StrictIntegerField,
        models.FloatField: StrictFloatField,
        models.BooleanField: StrictBooleanField,
    }

    def build_standard_field(self, field_name: str, model_field: Any) -> Any:
        made, options = super().build_standard_field(field_name, model_field)
        options.pop("label", None)
        return made, options


class ShownSerializer(serializers.ModelSerializer[Row]):
    """A read-only representation of a row."""

    def get_extra_kwargs(self) -> dict[str, Any]:
        said = super().get_extra_kwargs()
        return {
            name: {**said.get(name, {}), "read_only": True} for name in self.Meta.fields
        }


def validated(
    serializer: type[serializers.BaseSerializer[Any]], given: object, **options: Any
) -> dict[str, Any]:
    """Return a body, or a URL's parameters, as validated by a serializer."""
    read = serializer(data=given, **options)
    _say_remedies(read)
    read.is_valid(raise_exception=True)
    return dict(read.validated_data)


# What to send, by the field's class; the first match counts.
_TAKES: Sequence[tuple[type[serializers.Field[Any, Any, Any, Any]], str]] = (
    (serializers.BooleanField, "true or false"),
    (serializers.IntegerField, "a whole number"),
    (serializers.FloatField, "a number"),
    (serializers.DateTimeField, "a moment such as 2027-03-31T09:00:00Z"),
    (serializers.DateField, "a day such as 2027-03-31"),
    (serializers.ListField, "a list"),
    (serializers.ListSerializer, "a list"),
    (serializers.DictField, "an object"),
    (serializers.BaseSerializer, "an object"),
    (serializers.PrimaryKeyRelatedField, "an id"),
    (serializers.SlugRelatedField, "a slug"),
    (serializers.ChoiceField, "one of its values"),
    (serializers.CharField, "a text"),
)


def _say_remedies(field: Any, within: tuple[type, ...] = ()) -> None:
    """Set error messages with fault and remedy on `field` and its nested fields.

    The message on a wrong choice lists the valid ones. Serializers nested in one of
    their own class (`within`), as in a tree, are skipped, so that the recursion ends.
    """
    takes = next((said for kind, said in _TAKES if isinstance(field, kind)), "a value")
    messages = field.error_messages
    messages["required"] = f"It is missing; send {takes}."
    messages["null"] = f"null is not allowed here; send {takes}" + (
        "." if field.required else ", or leave the field out."
    )
    if isinstance(field, serializers.CharField):
        messages["blank"] = "It is empty; send a text with something in it."
    if isinstance(field, serializers.ChoiceField):
        known = first_of([str(each) for each in field.choices], MAX_REPORTED)
        known = known.replace("{", "{{").replace("}", "}}")
        messages["invalid_choice"] = (
            f'"{{input!s:.{MAX_SHOWN}}}" is not a valid choice; there are: {known}.'
        )
    elif isinstance(field, serializers.Serializer):
        messages["invalid"] = "An object, {{...}}, is expected here, not a {datatype}."
        if type(field) not in within:
            for each in field.fields.values():
                _say_remedies(each, (*within, type(field)))
    elif hasattr(field, "child"):  # of a list or a dictionary
        _say_remedies(field.child, within)


def optional_text(source: str, **options: Any) -> serializers.CharField:
    """Return a field that shows a row's text, or null if it is missing."""
    return serializers.CharField(
        source=source, default=None, allow_null=True, **options
    )


def username_field(field: str, **options: Any) -> serializers.CharField:
    return optional_text(f"{field}.username", **options)
