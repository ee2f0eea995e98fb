"""Rows named in a request: what the caller may not see does not exist."""

from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet
from rest_framework.exceptions import ValidationError

from accounts.api.strict_fields import StrictPrimaryKeyField, StrictSlugField
from kb.models import Audience, Document, KnowledgeBase, Section, Tag


class KnowledgeBaseField(StrictSlugField):
    """A knowledge base by its slug."""

    queryset = KnowledgeBase.objects.all()

    def __init__(self, **options: Any) -> None:  # noqa: ANN401  # the library's
        super().__init__(slug_field="slug", **options)


class AudienceField(StrictSlugField):
    """An audience of the caller's, by its slug."""

    queryset = Audience.objects.all()

    def __init__(self, **options: Any) -> None:  # noqa: ANN401  # the library's
        super().__init__(slug_field="slug", **options)

    def get_queryset(self) -> QuerySet[Any]:
        """Return the caller's audiences."""
        return Audience.objects.visible_to(self.context["request"].user)


class DocumentField(StrictPrimaryKeyField):
    """A document of one of the caller's audiences, by its id."""

    queryset = Document.objects.all()

    def get_queryset(self) -> QuerySet[Any]:
        """Return the documents that the caller may see."""
        return Document.objects.visible_to(self.context["request"].user).select_related(
            "knowledge_base", "audience"
        )


class SectionField(StrictPrimaryKeyField):
    """A section of a document of one of the caller's audiences, by its id."""

    queryset = Section.objects.all()

    def get_queryset(self) -> QuerySet[Any]:
        """Return the sections that the caller may see."""
        return Section.objects.filter(
            document__in=Document.objects.visible_to(self.context["request"].user)
        ).select_related("document__knowledge_base", "document__audience")


class TagField(StrictSlugField):
    """A tag of one facet, by its slug."""

    queryset = Tag.objects.all()

    def __init__(self, facet: Tag.Facet, **options: Any) -> None:  # noqa: ANN401  # the library's
        self._facet = facet
        super().__init__(
            slug_field="slug", help_text=f"Slug of a {facet.label}.", **options
        )

    def get_queryset(self) -> QuerySet[Any]:
        """Return the tags of the facet."""
        return Tag.objects.filter(facet=self._facet)


class UserField(StrictSlugField):
    """An active user by name."""

    queryset = User.objects.filter(is_active=True)

    def __init__(self, **options: Any) -> None:  # noqa: ANN401  # the library's
        super().__init__(slug_field="username", **options)


def knowledge_base_of(attrs: dict[str, Any]) -> KnowledgeBase:
    """Return the knowledge base of the named section or document, or the only one.

    Raises:
        ValidationError: Neither is named, and there is not exactly one.
    """
    section = attrs.get("section")
    document = attrs.get("document") or (section.document if section else None)
    if document is not None:
        return document.knowledge_base  # type: ignore[no-any-return]  # a Document's
    found = list(KnowledgeBase.objects.all()[:2])
    if len(found) != 1:
        said = "There are several" if found else "There is none"
        raise ValidationError(
            {"knowledge_base": [f"{said}; name the one it belongs to."]}
        )
    return found[0]
