from typing import Any

from django.contrib import messages
from django.db import IntegrityError, connection, transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from unfold.admin import ModelAdmin


class RefusedDeletionAdmin(ModelAdmin):  # type: ignore[misc]  # unfold ships no types
    """Says so where something that the user may not see still needs what is deleted.

    Django lists what needs it as far as the user sees that; the rest only the database
    knows of.
    """

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        """Delete it, judged at once and not when the request has ended."""
        self.delete_queryset(request, type(obj)._default_manager.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Delete them all, or none."""
        with transaction.atomic(), connection.cursor() as cursor:
            queryset.delete()
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")

    def delete_view(
        self,
        request: HttpRequest,
        object_id: str,
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Delete one, or say why not."""
        try:
            response: HttpResponse = super().delete_view(
                request, object_id, extra_context
            )
        except IntegrityError:
            return self._refused(request)
        return response

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Delete the chosen ones, or say why not."""
        try:
            with transaction.atomic():
                response: HttpResponse = super().changelist_view(request, extra_context)
        except IntegrityError:
            return self._refused(request)
        return response

    def _refused(self, request: HttpRequest) -> HttpResponse:
        self.message_user(
            request,
            "Nothing was deleted: knowledge that you may not see still belongs to it. "
            "Somebody of its audience must move that first.",
            level=messages.ERROR,
        )
        return HttpResponseRedirect(request.path)
