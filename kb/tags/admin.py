from collections.abc import Sequence
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest

from accounts.admin_parts import ListFilter
from accounts.base_admin import badge
from accounts.people import by_name, person_name
from accounts.roles import Role, holders
from kb.interface.admin import RefusedDeletionAdmin
from kb.tags.models import Tag

_FACETS = {Tag.Facet.PRODUCT_LINE: "info", Tag.Facet.LINE_OF_BUSINESS: "success"}


class _ExpertFilter(ListFilter):
    title = parameter_name = "experts"
    choices_by_value = {"none": "nobody", "some": "somebody"}

    def narrow(
        self, tags: QuerySet[Tag], value: str, request: HttpRequest
    ) -> QuerySet[Tag]:
        lone = Tag.objects.without_expert().values("pk")
        if value == "none":
            return tags.filter(pk__in=lone)
        return tags.exclude(pk__in=lone)


@admin.register(Tag)
class TagAdmin(RefusedDeletionAdmin):
    list_display: ClassVar = ["name", "slug", "shown_facet", "entries", "who_knows"]
    list_filter: ClassVar = ["facet", _ExpertFilter]
    search_fields: ClassVar = ["name", "slug"]
    prepopulated_fields: ClassVar = {"slug": ["name"]}
    fields: ClassVar = ["name", "slug", "facet", "experts"]
    fixed_fields = ["facet"]
    shown_facet = badge("facet", _FACETS)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Tag]:
        tags: QuerySet[Tag] = super().get_queryset(request)
        return tags.annotate(
            as_product=Count("entries_of_product_line", distinct=True),
            as_business=Count("entries_of_line_of_business", distinct=True),
        ).prefetch_related("experts")

    def formfield_for_manytomany(
        self, db_field: Any, request: HttpRequest, **options: Any
    ) -> Any:
        if db_field.name == "experts":
            options["queryset"] = by_name(holders(Role.SME))
        return super().formfield_for_manytomany(db_field, request, **options)

    def get_deleted_objects(
        self, objs: Sequence[Any] | QuerySet[Any], request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """List only the tags, not the tens of thousands of daily counts deleted too."""
        names = [str(tag) for tag in objs]
        return names, {str(self.opts.verbose_name_plural): len(names)}, set(), []

    @admin.display(description="entries")
    def entries(self, tag: Any) -> int:
        counted: int = tag.as_product + tag.as_business
        return counted

    @admin.display(description="experts")
    def who_knows(self, tag: Tag) -> str:
        experts = [user for user in tag.experts.all() if user.is_active]
        return ", ".join(sorted(map(person_name, experts))) or "nobody"
