from typing import Any, Self

from django.conf import settings
from django.db import models

from accounts.models import optional_row
from accounts.people import AnyUser


class TagQuerySet(models.QuerySet["Tag"]):
    def product_lines(self) -> Self:
        return self.filter(facet=Tag.Facet.PRODUCT_LINE)

    def lines_of_business(self) -> Self:
        return self.filter(facet=Tag.Facet.LINE_OF_BUSINESS)

    def of_expert(self, user: AnyUser) -> Self:
        return self.filter(experts=user.pk)

    def without_expert(self) -> Self:
        return self.exclude(experts__is_active=True)


class Tag(models.Model):
    """A topic of entries and questions, in one of two facets, with its experts.

    An entry and an answer have at most one tag of each facet.
    """

    class Facet(models.TextChoices):
        PRODUCT_LINE = "product_line", "product line"
        LINE_OF_BUSINESS = "line_of_business", "line of business"

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=100)
    facet = models.CharField(max_length=16, choices=Facet.choices)
    experts = models.ManyToManyField(
        settings.AUTH_USER_MODEL,
        blank=True,
        related_name="expert_tags",
        help_text="Experts who review questions about this tag.",
    )

    objects = TagQuerySet.as_manager()

    class Meta:
        ordering = ["facet", "slug"]

    def __str__(self) -> str:
        return self.name


def tag_of(
    facet: Tag.Facet, related_name: str, help_text: str = "", **options: Any
) -> "models.ForeignKey[Tag | None, Tag | None]":
    """Return a field for at most one tag of a facet."""
    only = {"facet": facet}
    return optional_row(
        Tag, related_name, help_text, blank=True, limit_choices_to=only, **options
    )
