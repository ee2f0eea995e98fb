"""Rows named in a request: what the caller may not see does not exist."""

from typing import Any

import django_filters
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework.exceptions import ValidationError
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts.filters import BooleanFilter
from accounts.roles import Role, has_role
from accounts.strict_fields import StrictPrimaryKeyField, StrictSlugField
from kb.audiences.models import Audience
from kb.conflicts.models import Conflict, ConflictQuerySet
from kb.documents.models import Document, KnowledgeBase, Section
from kb.entries.models import Entry, EntryQuerySet
from kb.tags.models import Tag


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
        return Audience.objects.visible_to(self.context["request"].user)


class DocumentField(StrictPrimaryKeyField):
    """A document of one of the caller's audiences, by its id."""

    queryset = Document.objects.all()

    def get_queryset(self) -> QuerySet[Any]:
        return Document.objects.visible_to(self.context["request"].user).select_related(
            "knowledge_base", "audience"
        )


class SectionField(StrictPrimaryKeyField):
    """A section of a document of one of the caller's audiences, by its id."""

    queryset = Section.objects.all()

    def get_queryset(self) -> QuerySet[Any]:
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


class _ReadOrWrite(BasePermission):
    writes: Role

    def has_permission(self, request: Request, view: APIView) -> bool:
        least = Role.AGENT if request.method in SAFE_METHODS else self.writes
        self.message = f"This needs the role {least}."
        return has_role(request.user, least)


class AgentReadsCuratorWrites(_ReadOrWrite):
    """Entries and documents."""

    writes = Role.CURATOR


class AgentReadsAdminWrites(_ReadOrWrite):
    """Audiences, which decide who sees what."""

    writes = Role.ADMIN


WORDS_LIMIT = 200


@extend_schema_field({"type": "string", "maxLength": WORDS_LIMIT})
class _WordsFilter(django_filters.CharFilter):
    pass


@extend_schema_field({"type": "string"})
class KnowledgeBaseFilter(django_filters.ModelChoiceFilter):
    """A knowledge base by its slug."""

    def __init__(self) -> None:
        super().__init__(
            queryset=KnowledgeBase.objects.all(),
            to_field_name="slug",
            label="Its slug.",
        )


@extend_schema_field({"type": "string"})
class _AudienceFilter(django_filters.ModelChoiceFilter):
    def __init__(self) -> None:
        super().__init__(to_field_name="slug", label="One of your audiences.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Audience]:
        return Audience.objects.visible_to(request.user)


@extend_schema_field({"type": "string"})
class TagFilter(django_filters.ModelChoiceFilter):
    """A tag of one facet by its slug."""

    def __init__(self, facet: Tag.Facet, **options: Any) -> None:  # noqa: ANN401  # the library's
        super().__init__(
            queryset=Tag.objects.filter(facet=facet),
            to_field_name="slug",
            label=f"Slug of a {facet.label}.",
            **options,
        )


@extend_schema_field({"type": "integer"})
class _DocumentFilter(django_filters.ModelChoiceFilter):
    def __init__(self) -> None:
        super().__init__(label="The id of a document that you may see.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Document]:
        return Document.objects.visible_to(request.user)


@extend_schema_field({"type": "integer"})
class _EntryFilter(django_filters.ModelChoiceFilter):
    def __init__(self, **options: Any) -> None:  # noqa: ANN401  # the library's
        super().__init__(label="The id of an entry that you may see.", **options)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Entry]:
        return Entry.objects.visible_to(request.user)


class EntryFilter(django_filters.FilterSet):
    """What a list of entries may be narrowed by."""

    knowledge_base = KnowledgeBaseFilter()
    audience = _AudienceFilter()
    document = _DocumentFilter()
    product_line = TagFilter(Tag.Facet.PRODUCT_LINE)
    line_of_business = TagFilter(Tag.Facet.LINE_OF_BUSINESS)
    state = django_filters.MultipleChoiceFilter(
        choices=Entry.State.choices, label="May be given more than once."
    )
    origin = django_filters.MultipleChoiceFilter(
        choices=Entry.Origin.choices, label="May be given more than once."
    )
    expired = BooleanFilter(method="filter_expired", label="Past its valid_until?")
    q = _WordsFilter(
        method="filter_words",
        max_length=WORDS_LIMIT,
        label='Words of question and text, by stem; "..." a phrase, -word without it.',
    )

    class Meta:
        model = Entry
        fields: list[str] = []

    def filter_expired(
        self, queryset: EntryQuerySet, _name: str, value: bool
    ) -> EntryQuerySet:
        """Keep what has expired by now, or what has not."""
        now = timezone.now()
        return queryset.expired(now) if value else queryset.current(now)

    def filter_words(
        self, queryset: EntryQuerySet, _name: str, value: str
    ) -> EntryQuerySet:
        return queryset.saying(value)


class ConflictFilter(django_filters.FilterSet):
    """What a list of conflicts may be narrowed by."""

    state = django_filters.MultipleChoiceFilter(
        choices=Conflict.State.choices, label="May be given more than once."
    )
    kind = django_filters.MultipleChoiceFilter(
        choices=Conflict.Kind.choices, label="May be given more than once."
    )
    entry = _EntryFilter(method="filter_entry")

    class Meta:
        model = Conflict
        fields: list[str] = []

    def filter_entry(
        self, queryset: ConflictQuerySet, _name: str, value: Entry
    ) -> ConflictQuerySet:
        """Keep those that one entry is part of."""
        return queryset.of_entry(value.pk)


class DocumentFilter(django_filters.FilterSet):
    """What a list of documents may be narrowed by."""

    knowledge_base = KnowledgeBaseFilter()
    audience = _AudienceFilter()
    q = _WordsFilter(
        field_name="title",
        lookup_expr="icontains",
        max_length=WORDS_LIMIT,
        label="A part of the title.",
    )

    class Meta:
        model = Document
        fields: list[str] = []
