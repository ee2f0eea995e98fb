from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from kb.models import Audience, EntryQuerySet


class ExpiryFilter(admin.SimpleListFilter):
    """Past its time, or not."""

    title = "expiry"
    parameter_name = "expiry"

    def lookups(
        self,
        request: HttpRequest,
        model_admin: Any,  # noqa: ANN401  # unfold's
    ) -> list[tuple[str, str]]:
        """Name the choices."""
        return [("expired", "expired"), ("current", "not expired")]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Any]
    ) -> QuerySet[Any] | None:
        """Narrow to the choice."""
        if not isinstance(queryset, EntryQuerySet) or self.value() is None:
            return None
        now = timezone.now()
        return (
            queryset.expired(now)
            if self.value() == "expired"
            else queryset.current(now)
        )


class AudienceFilter(admin.SimpleListFilter):
    """One of the user's audiences."""

    title = "audience"
    parameter_name = "audience"

    def lookups(
        self,
        request: HttpRequest,
        model_admin: Any,  # noqa: ANN401  # unfold's
    ) -> list[tuple[str, str]]:
        """Name the user's audiences, no other."""
        visible = Audience.objects.visible_to(request.user)
        return [(audience.slug, audience.name) for audience in visible]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Any]
    ) -> QuerySet[Any] | None:
        """Narrow to the choice."""
        if self.value() is None:
            return None
        return queryset.filter(audience__slug=self.value())
