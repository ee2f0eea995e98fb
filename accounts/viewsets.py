from typing import Any, TypeVar

from django.db.models import Model
from rest_framework.serializers import BaseSerializer
from rest_framework.viewsets import GenericViewSet

from accounts.exceptions import NotFoundError

Row = TypeVar("Row", bound=Model)


class ResourceViewSet(GenericViewSet[Row]):
    """Rows of one model over REST; `get_queryset` holds those that the caller may see.

    Attributes:
        not_found: Raised where that holds none of the address's key.
    """

    throttle_scope = "user"
    lookup_value_converter = "int"
    not_found: type[NotFoundError] = NotFoundError

    def get_object(self) -> Row:
        key = self.kwargs[self.lookup_url_kwarg or self.lookup_field]
        rows = self.get_queryset()
        row = rows.filter(**{self.lookup_field: key}).first()
        if row is None:
            noun = rows.model._meta.verbose_name
            raise self.not_found(f"There is no {noun} {key!r} that you may see.")
        return row

    def validated(self, serializer: type[BaseSerializer[Any]]) -> dict[str, Any]:
        """Return the values of the request's body; refuse a body that is not valid."""
        body = serializer(
            data=self.request.data,
            context=self.get_serializer_context(),
            partial=self.request.method == "PATCH",
        )
        body.is_valid(raise_exception=True)
        return dict(body.validated_data)
