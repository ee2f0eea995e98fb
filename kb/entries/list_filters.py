from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from kb.audiences.models import Audience
from kb.entries.due import LABELS, Reason
from kb.entries.models import EntryQuerySet


class ExpiryFilter(admin.SimpleListFilter):
    """Past its time, or not."""

    title = "expiry"
    parameter_name = "expiry"

    def lookups(
        self,
        request: HttpRequest,
        model_admin: Any,  # noqa: ANN401  # unfold's
    ) -> list[tuple[str, str]]:
        return [("expired", "expired"), ("current", "not expired")]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Any]
    ) -> QuerySet[Any] | None:
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
        visible = Audience.objects.visible_to(request.user)
        return [(audience.slug, audience.name) for audience in visible]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Any]
    ) -> QuerySet[Any] | None:
        if self.value() is None:
            return None
        return queryset.filter(audience__slug=self.value())


class DueFilter(admin.SimpleListFilter):
    """Why an entry is due."""

    title = "due"
    parameter_name = "due"

    def lookups(
        self,
        request: HttpRequest,
        model_admin: Any,  # noqa: ANN401  # unfold's
    ) -> list[tuple[str, str]]:
        return [("any", "for any reason"), *LABELS.items()]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Any]
    ) -> QuerySet[Any] | None:
        chosen = self.value()
        if not isinstance(queryset, EntryQuerySet) or chosen is None:
            return None
        due = queryset.due(timezone.now())
        if chosen == "any":
            return due
        if chosen not in LABELS:
            return due.none()
        return due.due_for(Reason(chosen), timezone.now())


class OwnerFilter(admin.SimpleListFilter):
    """The user's own, or nobody's."""

    title = "owner"
    parameter_name = "owned"

    def lookups(
        self,
        request: HttpRequest,
        model_admin: Any,  # noqa: ANN401  # unfold's
    ) -> list[tuple[str, str]]:
        return [("mine", "mine"), ("nobody", "nobody's")]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Any]
    ) -> QuerySet[Any] | None:
        if self.value() == "mine":
            return queryset.filter(owner_id=request.user.pk)
        if self.value() == "nobody":
            return queryset.filter(owner__isnull=True)
        return None
