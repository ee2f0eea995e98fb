"""Parts that the REST interfaces of all apps share: strict fields, filters, view sets.

A strict field accepts only its own JSON type. REST framework also reads "5" and 5.0 as
the integer 5, and true as 1, so that a caller's mistake would be stored as knowledge.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, NoReturn, TypeVar

import django_filters
from django import forms
from django.contrib.auth.models import User
from django.db import models
from django.db.models import Model, QuerySet
from django.http import HttpResponseBase, StreamingHttpResponse
from django.urls import path
from django_filters.fields import IsoDateTimeField
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.fields import empty
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from accounts import idempotency
from accounts.exceptions import NotFoundError, first_of
from accounts.replica import reads_replica
from accounts.roles import caller

MAX_REPORTED = 20
"""The maximum number of errors that the response to one request lists."""


_MAX_SHOWN = 80
"""The maximum number of characters of a wrong value that an error repeats."""


def _shown(value: object) -> str:
    """Return a value of a body for an error message: as JSON, truncated if long."""
    text = json.dumps(value, default=str)  # a form may send a file in place of a text
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]} ..."


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


_Row = TypeVar("_Row", bound=Model)


class ShownSerializer(serializers.ModelSerializer[_Row]):
    """A read-only representation of a row."""

    def get_extra_kwargs(self) -> dict[str, Any]:
        said = super().get_extra_kwargs()
        return {
            name: {**said.get(name, {}), "read_only": True} for name in self.Meta.fields
        }


# Filters of lists over REST; an invalid value is refused, never ignored.


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
                    f"%(value).{_MAX_SHOWN}s is not a valid choice; there are: {listed}."
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
                f"{value} is outside the years 1 to 9999 in UTC; use one within them."
            ) from error


class MomentFilter(django_filters.IsoDateTimeFilter):
    """A filter by date and time, limited to the years 1 to 9999 in UTC."""

    field_class = _MomentField


@extend_schema_field({"type": "string", "minLength": 1})
class SlugFilter(django_filters.CharFilter):
    """A filter by a row's slug or name."""


# What the REST views of all apps share: rows by id, and actions on one of them.


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
            f'"{{input!s:.{_MAX_SHOWN}}}" is not a valid choice; there are: {known}.'
        )
    elif isinstance(field, serializers.Serializer):
        messages["invalid"] = "An object, {{...}}, is expected here, not a {datatype}."
        if type(field) not in within:
            for each in field.fields.values():
                _say_remedies(each, (*within, type(field)))
    elif hasattr(field, "child"):  # of a list or a dictionary
        _say_remedies(field.child, within)


class KnownQueryView(APIView):
    """The base of every REST view, which refuses unknown query parameters.

    The known parameters are those in the OpenAPI description of the address. A POST
    with an `Idempotency-Key` is executed once.
    """

    takes_idempotency_key = True

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        # Permissions and throttles have been checked by now.
        if request.method == "POST" and idempotency.HEADER in request.headers:
            self._do_once()
        match = request.resolver_match
        if not request.query_params or match is None:
            return
        method = "get" if request.method == "HEAD" else str(request.method).lower()
        known = _query_parameters(match.route, match.func).get(method)
        if known is None and method != "options" and hasattr(self, method):
            known = frozenset()  # the address is not in the description
        if known is not None and (unknown := request.query_params.keys() - known):
            raise unknown_names(unknown, known, "parameter")

    def _do_once(self) -> None:
        post = getattr(self, "post", None)
        if post is not None and self.takes_idempotency_key:
            self.post = idempotency.done_once(self, post)


@cache
def _query_parameters(
    route: str, view: Callable[..., HttpResponseBase]
) -> Mapping[str, frozenset[str]]:
    """Return the query parameters in the description of an address, by method."""
    generator = SchemaGenerator(patterns=[path(route, view)])  # type: ignore[no-untyped-call]  # untyped in the library
    described = generator.get_schema(public=True)  # type: ignore[no-untyped-call]
    return {
        method: frozenset(
            each["name"]
            for each in operation.get("parameters", ())
            if each["in"] == "query"
        )
        for methods in described["paths"].values()
        for method, operation in methods.items()
    }


class ResourceViewSet(KnownQueryView, GenericViewSet[_Row]):
    """Rows of one model over REST; `get_queryset` returns those the caller may see."""

    throttle_scope = "user"
    lookup_value_converter = "int"
    not_found: type[NotFoundError] = NotFoundError

    def get_object(self) -> _Row:
        key = self.kwargs[self.lookup_url_kwarg or self.lookup_field]
        rows = self.get_queryset()
        row = rows.filter(**{self.lookup_field: key}).first()
        if row is None:
            noun = rows.model._meta.verbose_name
            shown = repr(key) if isinstance(key, str) else key
            raise self.not_found(f"There is no {noun} {shown} that you may see.")
        return row

    def validated(
        self, serializer: type[serializers.BaseSerializer[Any]]
    ) -> dict[str, Any]:
        return validated(
            serializer,
            self.request.data,
            context=self.get_serializer_context(),
            partial=self.request.method == "PATCH",
        )


class RowViewSet(ListModelMixin, ResourceViewSet[_Row]):
    """A list of rows, newest first, and actions on one of them."""

    @property
    def user(self) -> User:
        return caller(self.request)

    @reads_replica
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().list(request, *args, **kwargs)

    def row_response(
        self, row: _Row | None = None, status: int | None = None
    ) -> Response:
        shown = self.get_object() if row is None else row
        return Response(self.get_serializer(shown).data, status)


def optional_text(source: str, **options: Any) -> serializers.CharField:
    """Return a field that shows a row's text, or null if it is missing."""
    return serializers.CharField(
        source=source, default=None, allow_null=True, **options
    )


def username_field(field: str, **options: Any) -> serializers.CharField:
    return optional_text(f"{field}.username", **options)


def csv_download(lines: Iterable[str], name: str) -> StreamingHttpResponse:
    return StreamingHttpResponse(
        lines,
        content_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="{name}.csv"',
            "Cache-Control": "no-store",
        },
    )
