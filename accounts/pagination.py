"""Cursor pagination: stable while rows are added, and equally fast on every page."""

import re
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError as DjangoValidationError
from django.db.models import Field, Model, QuerySet
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts.ids import number_in

_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")


class NewestFirstPagination(CursorPagination):
    """Pages of 1 to 200 rows in the view's `ordering`, by default newest first.

    REST framework ignores an invalid page size, and passes a forged cursor position on
    to the database; this class refuses both.
    """

    ordering: str | list[str] | tuple[str, ...] = ("-created_at", "-pk")
    page_size_query_param = "page_size"
    page_size_query_description = "Rows a page, 1 to 200."
    max_page_size: int = 200

    def paginate_queryset(  # type: ignore[override]  # takes querysets only
        self, queryset: QuerySet[Any], request: Request, view: APIView | None = None
    ) -> list[Any] | None:
        if not _BASE64.fullmatch(request.query_params.get(self.cursor_query_param, "")):
            raise _bad_cursor()  # the library ignores characters that are not base64
        try:
            cursor = self.decode_cursor(request)
        except NotFound as error:
            raise _bad_cursor() from error
        if cursor is not None and cursor.position is not None:
            ordering = self.get_ordering(request, queryset, view or APIView())
            if not _is_position(queryset.model, ordering[0], str(cursor.position)):
                raise _bad_cursor()
        return super().paginate_queryset(queryset, request, view)

    def get_ordering(
        self, request: Request, queryset: QuerySet[Any], view: APIView
    ) -> tuple[str, ...]:
        given: tuple[str, ...] | None = getattr(view, "ordering", None)
        return given or tuple(super().get_ordering(request, queryset, view))

    def get_page_size(self, request: Request) -> int | None:
        asked = request.query_params.get("page_size")
        if asked is None:
            return self.page_size
        size = number_in(asked)
        if size is None or not 1 <= size <= self.max_page_size:
            msg = f"{asked!r} is not a number from 1 to {self.max_page_size}."
            raise ValidationError({"page_size": [msg]})
        return size

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        parameters = super().get_schema_operation_parameters(view)
        for parameter in parameters:
            if parameter["name"] == "page_size":
                parameter["schema"].update(minimum=1, maximum=self.max_page_size)
            else:
                parameter["schema"]["pattern"] = f"^{_BASE64.pattern}$"
        return parameters


def _bad_cursor() -> ValidationError:
    msg = "This is not a cursor of this list; take it from `next` or `previous`."
    return ValidationError({"cursor": [msg]})


def _is_position(model: type[Model], ordering: str, position: str) -> bool:
    name = ordering.lstrip("-")
    field = model._meta.pk if name == "pk" else model._meta.get_field(name)
    if not isinstance(field, Field):
        return False
    try:
        value = field.to_python(position)
        if isinstance(value, datetime):
            # Our cursors are in UTC; Python accepts offsets that the database refuses.
            return value.utcoffset() == timedelta(0)
    except (DjangoValidationError, ValueError, OverflowError):
        return False
    return "\0" not in str(value)
