from typing import TYPE_CHECKING

from rest_framework.metadata import BaseMetadata
from rest_framework.request import Request

if TYPE_CHECKING:  # the library's views import this module by settings
    from rest_framework.views import APIView


class MethodsOnly(BaseMetadata):
    """What OPTIONS tells: the methods; the schema tells the rest.

    The library's own looks rows up to tell which fields could be written.
    """

    def determine_metadata(
        self, request: Request, view: "APIView"
    ) -> dict[str, list[str]]:
        """Return the methods of a view."""
        return {"allow": view.allowed_methods}
