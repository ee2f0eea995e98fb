"""What REST views of all apps share: rows by id, and what is done to one of them."""

from collections.abc import Iterable
from typing import Any, TypeVar

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


class ResourceViewSet(GenericViewSet[_Row]):
    """Rows of one model over REST; `get_queryset` holds those that the caller may see.

    Attributes:
        not_found: Raised where that holds none of the address's key.
    """

    throttle_scope = "user"
    lookup_value_converter = "int"
    not_found: type[NotFoundError] = NotFoundError

    def get_object(self) -> _Row:
        key = self.kwargs[self.lookup_url_kwarg or self.lookup_field]
        rows = self.get_queryset()
        row = rows.filter(**{self.lookup_field: key}).first()
        if row is None:
            noun = rows.model._meta.verbose_name
            raise self.not_found(f"There is no {noun} {key!r} that you may see.")
        return row

    def validated(
        self, serializer: type[serializers.BaseSerializer[Any]]
    ) -> dict[str, Any]:
        """Return the values of the request's body; refuse a body that is not valid."""
        body = serializer(
            data=self.request.data,
            context=self.get_serializer_context(),
            partial=self.request.method == "PATCH",
        )
        body.is_valid(raise_exception=True)
        return dict(body.validated_data)


class RowViewSet(ListModelMixin, ResourceViewSet[_Row]):
    """A list of rows, newest first, and actions on one of them."""

    pagination_class = NewestFirstPagination

    @property
    def user(self) -> User:
        """Who is signed in."""
        return caller(self.request)

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
