"""Strict fields: each accepts only its own JSON type.

REST framework also reads "5" and 5.0 as the integer 5, and true as 1, so that a caller's
mistake would be stored as knowledge.
"""

import json
from datetime import UTC, datetime
from typing import Any, NoReturn

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.fields import empty

MAX_REPORTED = 20
"""The maximum number of errors that the response to one request lists."""

MAX_SHOWN = 80
"""The maximum number of characters of a wrong value that an error repeats."""


def _shown(value: object) -> str:
    """Return a value of a body for an error message: as JSON, truncated if long."""
    text = json.dumps(value, default=str)  # a form may send a file in place of a text
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} ..."


class StrictCharField(serializers.CharField):
    default_error_messages = {"invalid": "{input} is not a text; send one in quotes."}

    def to_internal_value(self, data: object) -> str:
        if not isinstance(data, str):
            self.fail("invalid", input=_shown(data))
        return super().to_internal_value(data)


class StrictIntegerField(serializers.IntegerField):
    default_error_messages = {
        "invalid": "{input} is not a whole number; send one such as 5, without quotes."
    }

    def to_internal_value(self, data: object) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid", input=_shown(data))
        return super().to_internal_value(data)


class StrictFloatField(serializers.FloatField):
    default_error_messages = {
        "invalid": "{input} is not a number; send one such as 0.5, without quotes."
    }

    def to_internal_value(self, data: object) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid", input=_shown(data))
        try:
            return super().to_internal_value(data)
        except OverflowError:  # an integer too large for a float
            self.fail("invalid", input=_shown(data))


class StrictBooleanField(serializers.BooleanField):
    default_error_messages = {
        "invalid": "{input} is neither true nor false; send one of them, without quotes."
    }

    def to_internal_value(self, data: object) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=_shown(data))
        return data


class StrictMomentField(serializers.DateTimeField):
    """A date and time as text, converted to UTC; without an offset, it is in UTC."""

    def to_internal_value(self, value: object) -> datetime:
        if not isinstance(value, str):
            self.fail(
                "invalid", format="YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z]"
            )
        try:
            return super().to_internal_value(value).astimezone(UTC)
        except OverflowError:  # beyond the years 1 to 9999 in UTC
            self.fail("overflow")


class _StrictRelatedField(serializers.RelatedField[Any, Any, Any]):
    def run_validation(self, data: object = empty) -> Any:
        # REST framework's own field reads "" as null.
        return serializers.Field.run_validation(self, data)


class StrictPrimaryKeyField(
    _StrictRelatedField, serializers.PrimaryKeyRelatedField[Any]
):
    default_error_messages = {
        "incorrect_type": "{input} is not an id; send a whole number, without quotes.",
        "does_not_exist": "There is no {noun} {input}; send the id of one that you may see.",
    }

    def to_internal_value(self, data: object) -> Any:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("incorrect_type", input=_shown(data))
        rows: Any = self.get_queryset()
        try:
            return rows.get(pk=data)
        except rows.model.DoesNotExist:
            noun = rows.model._meta.verbose_name
            self.fail("does_not_exist", noun=noun, input=_shown(data))


def listed_slugs(rows: QuerySet[Any], slug_field: str) -> str:
    """Return the slugs of rows, at most `MAX_REPORTED`, or "none yet"."""
    found = rows.order_by(slug_field).values_list(slug_field, flat=True)
    known = list(found[: MAX_REPORTED + 1])
    others = " and others" if len(known) > MAX_REPORTED else ""
    return (", ".join(known[:MAX_REPORTED]) or "none yet") + others


def no_such_row(rows: QuerySet[Any], slug_field: str, slug: str) -> str:
    """Return the message that none of `rows` has this slug, with the available ones."""
    noun, listed = rows.model._meta.verbose_name, listed_slugs(rows, slug_field)
    return f"There is no {noun} {slug[:80]!a}; available: {listed}."


class StrictSlugField(_StrictRelatedField, serializers.SlugRelatedField[Any]):
    """A row by its slug; the error for an unknown slug lists the available ones."""

    default_error_messages = {"invalid": "{input} is not a slug; send one in quotes."}

    def to_internal_value(self, data: object) -> Any:
        if not isinstance(data, str):
            self.fail("invalid", input=_shown(data))
        rows: Any = self.get_queryset()
        name = str(self.slug_field)
        row = None if "\0" in data else rows.filter(**{name: data}).first()
        if row is None:
            self.fail_missing(rows, data)
        return row

    def fail_missing(self, rows: QuerySet[Any], slug: str) -> NoReturn:
        message = no_such_row(rows, str(self.slug_field), slug)
        raise serializers.ValidationError(message)


class StrictListField(serializers.ListField):
    """A list whose length is checked before its elements.

    REST framework checks every element first, possibly with a query for each.
    """

    def to_internal_value(self, data: object) -> list[Any]:
        if not isinstance(data, list):
            self.fail("not_a_list", input_type=type(data).__name__)
        if self.max_length is not None and len(data) > self.max_length:
            raise serializers.ValidationError(
                f"The list has {len(data):,} elements and may have {self.max_length}."
            )
        return super().to_internal_value(data)


class StrictSlugListField(StrictListField):
    """A list of rows by their slugs or names, loaded with one query."""

    def __init__(
        self, *, queryset: QuerySet[Any], slug_field: str, **options: Any
    ) -> None:
        super().__init__(child=StrictCharField(max_length=150), **options)
        self._queryset = queryset
        self._slug_field = slug_field

    def to_internal_value(self, data: object) -> list[Any]:
        names = super().to_internal_value(data)
        rows = self._queryset.filter(**{f"{self._slug_field}__in": names})
        found = {getattr(row, self._slug_field): row for row in rows}
        missing = [name for name in dict.fromkeys(names) if name not in found]
        if missing:
            noun = self._queryset.model._meta.verbose_name
            listed = ", ".join(map(ascii, missing[:MAX_REPORTED]))
            raise serializers.ValidationError(f"There is no {noun} {listed}.")
        return [found[name] for name in names]
