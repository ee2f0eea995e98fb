"""Fields that take the JSON type they name and nothing that could be turned into it.

The library reads "5", 5.0 and true as the integer 5 and writes the number 7 as the text
"7": a caller's mistake would be kept as knowledge.
"""

from collections.abc import Mapping
from typing import Any

from django.db import models
from rest_framework import serializers


class StrictCharField(serializers.CharField):
    def to_internal_value(self, data: object) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictIntegerField(serializers.IntegerField):
    def to_internal_value(self, data: object) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictFloatField(serializers.FloatField):
    def to_internal_value(self, data: object) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        try:
            return super().to_internal_value(data)
        except OverflowError:  # an integer beyond every float
            self.fail("invalid")


class StrictBooleanField(serializers.BooleanField):
    def to_internal_value(self, data: object) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class StrictPrimaryKeyField(serializers.PrimaryKeyRelatedField[Any]):
    """A row by its integer key."""

    def to_internal_value(self, data: object) -> Any:  # noqa: ANN401  # a row of any model
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("incorrect_type", data_type=type(data).__name__)
        return super().to_internal_value(data)


class StrictSlugField(serializers.SlugRelatedField[Any]):
    """A row by its unique name."""

    def to_internal_value(self, data: object) -> Any:  # noqa: ANN401  # a row of any model
        if not isinstance(data, str):
            self.fail("invalid")
        if "\0" in data:
            self.fail("does_not_exist", slug_name=self.slug_field, value=ascii(data))
        return super().to_internal_value(data)


class StrictSerializer(serializers.Serializer[Any]):
    """A JSON object whose every key is known: a misspelt key is no silent nothing."""

    def to_internal_value(self, data: object) -> Any:  # noqa: ANN401  # the library's
        """Return the values.

        Raises:
            ValidationError: Also when a key is unknown.
        """
        if isinstance(data, Mapping):
            unknown = sorted(str(key) for key in data.keys() - self.fields.keys())
            if unknown:
                known = ", ".join(sorted(self.fields))
                raise serializers.ValidationError(
                    {
                        key[:100]: [f"There is no such field; there are: {known}."]
                        for key in unknown
                    }
                )
        return super().to_internal_value(data)


class StrictModelSerializer(StrictSerializer, serializers.ModelSerializer[Any]):
    """A JSON object of a model's fields, each strictly of its type."""

    serializer_field_mapping = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.CharField: StrictCharField,
        models.TextField: StrictCharField,
        models.PositiveIntegerField: StrictIntegerField,
        models.FloatField: StrictFloatField,
        models.BooleanField: StrictBooleanField,
    }

    def build_standard_field(
        self,
        field_name: str,
        model_field: Any,  # noqa: ANN401  # the library's
    ) -> Any:  # noqa: ANN401  # the library's
        made, options = super().build_standard_field(field_name, model_field)
        options.pop("label", None)
        return made, options
