"""Lists by cursor: stable while rows are added, as fast on the last page as on the first."""

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
    """Pages by the view's `ordering`, or else newest first, of 1 to 200 rows.

    The library ignores a page size that is none and hands a forged position on.
    """

    ordering: str | list[str] | tuple[str, ...] = ("-created_at", "-pk")
    page_size_query_param = "page_size"
    page_size_query_description = "Rows a page, 1 to 200."
    max_page_size: int = 200

    def paginate_queryset(  # type: ignore[override]  # rows of a table, no other sequence
        self, queryset: QuerySet[Any], request: Request, view: APIView | None = None
    ) -> list[Any] | None:
        if not _BASE64.fullmatch(request.query_params.get(self.cursor_query_param, "")):
            raise _bad_cursor()  # the library skips over what is no base64
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
            msg = f"{asked!r} is no number from 1 to {self.max_page_size}."
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
    msg = "This is no cursor of this list; take it from `next` or `previous`."
    return ValidationError({"cursor": [msg]})


def _is_position(model: type[Model], ordering: str, position: str) -> bool:
    name = ordering.lstrip("-")
    field = model._meta.pk if name == "pk" else model._meta.get_field(name)
    if not isinstance(field, Field):
        return False
    try:
        value = field.to_python(position)
        if isinstance(value, datetime):
            # Ours are in UTC; Python has offsets that the database refuses.
            return value.utcoffset() == timedelta(0)
    except (DjangoValidationError, ValueError, OverflowError):
        return False
    return "\0" not in str(value)
