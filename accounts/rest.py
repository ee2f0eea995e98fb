"""What REST views of all apps share: rows by id, and what is done to one of them."""

from collections.abc import Iterable
from typing import Any, ClassVar, TypeVar

from django.contrib.auth.models import User
from django.db.models import Model
from django.http import StreamingHttpResponse
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from accounts.exceptions import NotFoundError
from accounts.pagination import NewestFirstPagination
from accounts.roles import caller

_Row = TypeVar("_Row", bound=Model)


class RowViewSet(ListModelMixin, GenericViewSet[_Row]):
    """A list of rows that the caller may see, and actions on one of them.

    `get_queryset` leaves out what the caller may not see, and `missing` is raised for it
    as for what does not exist.
    """

    throttle_scope = "user"
    pagination_class = NewestFirstPagination
    lookup_value_converter = "int"
    missing: ClassVar[type[NotFoundError]]

    @property
    def user(self) -> User:
        """Who is signed in."""
        return caller(self.request)

    def get_object(self) -> _Row:
        """Return the row of the address as it is now."""
        key = self.kwargs[self.lookup_url_kwarg or "pk"]
        rows = self.get_queryset()
        found = rows.filter(pk=key).first()
        if found is None:
            noun = rows.model._meta.verbose_name
            raise self.missing(f"There is no {noun} {key}.")
        return found

    def body(self, serializer: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """Return the values of a valid request body."""
        read = serializer(data=self.request.data, context=self.get_serializer_context())
        read.is_valid(raise_exception=True)
        return dict(read.validated_data)

    def row_response(
        self, row: _Row | None = None, status: int | None = None
    ) -> Response:
        """Return the row of the address, or another one, as the response."""
        shown = self.get_object() if row is None else row
        return Response(self.get_serializer(shown).data, status)


def username_field(field: str, **options: Any) -> serializers.CharField:  # noqa: ANN401  # the library's
    """Return the name of the user in a foreign key; null where it is empty."""
    return serializers.CharField(
        source=f"{field}.username", default=None, allow_null=True, **options
    )


def csv_download(lines: Iterable[str], name: str) -> StreamingHttpResponse:
    """Return lines of CSV as a file to download, streamed."""
    return StreamingHttpResponse(
        lines,
        content_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="{name}.csv"',
            "Cache-Control": "no-store",
        },
    )
