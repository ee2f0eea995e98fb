"""The REST views that all apps share: rows by id, and actions on one of them."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpResponseBase, StreamingHttpResponse
from django.urls import path
from drf_spectacular.generators import SchemaGenerator
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from accounts import idempotency
from accounts.exceptions import NotFoundError
from accounts.replica import reads_replica
from accounts.roles import caller

from .serializers import Row, unknown_names, validated


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


class ResourceViewSet(KnownQueryView, GenericViewSet[Row]):
    """Rows of one model over REST; `get_queryset` returns those the caller may see."""

    throttle_scope = "user"
    lookup_value_converter = "int"
    not_found: type[NotFoundError] = NotFoundError

    def get_object(self) -> Row:
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


class RowViewSet(ListModelMixin, ResourceViewSet[Row]):
    """A list of rows, newest first, and actions on one of them."""

    @property
    def user(self) -> User:
        return caller(self.request)

    @reads_replica
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().list(request, *args, **kwargs)

    def row_response(
        self, row: Row | None = None, status: int | None = None
    ) -> Response:
        shown = self.get_object() if row is None else row
        return Response(self.get_serializer(shown).data, status)


def csv_download(lines: Iterable[str], name: str) -> StreamingHttpResponse:
    return StreamingHttpResponse(
        lines,
        content_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="{name}.csv"',
            "Cache-Control": "no-store",
        },
    )
