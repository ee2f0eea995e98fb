from typing import Any

import django_filters
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field

from kb.models import (
    Audience,
    Conflict,
    ConflictQuerySet,
    Document,
    Entry,
    EntryQuerySet,
    KnowledgeBase,
    Tag,
)

WORDS_LIMIT = 200
_BOOLEANS = [("true", "true"), ("false", "false")]


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


@extend_schema_field({"type": "boolean"})
class _TruthFilter(django_filters.TypedChoiceFilter):
    """true or false; the library's own takes anything and ignores what it can't read."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401  # the library's
        super().__init__(
            choices=_BOOLEANS, coerce=lambda value: value == "true", **options
        )


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
    expired = _TruthFilter(method="filter_expired", label="Past its valid_until?")
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
        """Keep what says all the words."""
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
