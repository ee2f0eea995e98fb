"""Rows named in a request: what the caller may not see does not exist."""

from functools import partial
from typing import Any

import django_filters
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts.rest import StrictModelSerializer, StrictPrimaryKeyField, StrictSlugField
from accounts.roles import Role, has_role
from kb.audiences.models import Audience
from kb.conflicts.models import Conflict, ConflictQuerySet
from kb.documents.models import Document, KnowledgeBase, Section
from kb.entries.models import Entry
from kb.tags.models import Tag

NAMED_BY: dict[Any, str] = {
    KnowledgeBase: "slug",
    Audience: "slug",
    Tag: "slug",
    User: "username",
}
"""What names a row wherever knowledge is shown or exported; others go by their id."""


class _NamedField(StrictSlugField):
    queryset: Any

    def __init__(self, **options: Any) -> None:  # noqa: ANN401  # the library's
        super().__init__(slug_field=NAMED_BY[self.queryset.model], **options)


class KnowledgeBaseField(_NamedField):
    queryset = KnowledgeBase.objects.all()


class AudienceField(_NamedField):
    queryset = Audience.objects.all()

    def get_queryset(self) -> QuerySet[Any]:
        return Audience.objects.visible_to(self.context["request"].user)


class DocumentField(StrictPrimaryKeyField):
    queryset = Document.objects.all()

    def get_queryset(self) -> QuerySet[Any]:
        return Document.objects.visible_to(self.context["request"].user).select_related(
            "knowledge_base", "audience"
        )


class SectionField(StrictPrimaryKeyField):
    queryset = Section.objects.all()

    def get_queryset(self) -> QuerySet[Any]:
        return Section.objects.filter(
            document__in=Document.objects.visible_to(self.context["request"].user)
        ).select_related("document__knowledge_base", "document__audience")


class TagField(_NamedField):
    queryset = Tag.objects.all()

    def __init__(self, facet: Tag.Facet, **options: Any) -> None:  # noqa: ANN401  # the library's
        self._facet = facet
        super().__init__(help_text=f"Slug of a {facet.label}.", **options)

    def get_queryset(self) -> QuerySet[Any]:
        return Tag.objects.filter(facet=self._facet)


class UserField(_NamedField):
    queryset = User.objects.filter(is_active=True)


class ReferringSerializer(serializers.ModelSerializer[Any]):
    """Shows the rows that a row refers to by `NAMED_BY`."""

    def build_relational_field(
        self,
        field_name: str,
        relation_info: Any,  # noqa: ANN401  # the library's
    ) -> tuple[type[Any], dict[str, Any]]:
        name = NAMED_BY.get(relation_info.related_model)
        if name is None or relation_info.to_many:
            return super().build_relational_field(field_name, relation_info)
        nullable = relation_info.model_field.null
        return serializers.SlugRelatedField, {
            "slug_field": name,
            "read_only": True,
            "allow_null": nullable,
            "help_text": "A user name." if name == "username" else "",
        }


class KnowledgeSerializer(StrictModelSerializer):
    """What is written of a row; rows that it refers to are those that the caller may see."""

    def build_relational_field(
        self,
        field_name: str,
        relation_info: Any,  # noqa: ANN401  # the library's
    ) -> tuple[Any, dict[str, Any]]:
        _, options = super().build_relational_field(field_name, relation_info)
        kept: dict[str, Any] = {
            k: options[k] for k in ("required", "allow_null") if k in options
        }
        if relation_info.related_model is Tag:
            return partial(TagField, Tag.Facet(field_name)), kept
        return _WRITTEN_BY[relation_info.related_model], kept

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "knowledge_base" in self.fields and "knowledge_base" not in attrs:
            attrs["knowledge_base"] = find_knowledge_base(attrs)
        return attrs


_WRITTEN_BY: dict[Any, Any] = {
    KnowledgeBase: KnowledgeBaseField,
    Audience: AudienceField,
    Document: DocumentField,
    Section: SectionField,
    User: UserField,
}


def find_knowledge_base(attrs: dict[str, Any]) -> KnowledgeBase:
    """Return the knowledge base of the named section or document, or the only one."""
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
        required = Role.AGENT if request.method in SAFE_METHODS else self.writes
        self.message = f"This needs the role {required}."
        return has_role(request.user, required)


class AgentReadsCuratorWrites(_ReadOrWrite):
    writes = Role.CURATOR


class AgentReadsAdminWrites(_ReadOrWrite):
    """Audiences, which decide who sees what."""

    writes = Role.ADMIN


WORDS_LIMIT = 200


@extend_schema_field({"type": "string", "maxLength": WORDS_LIMIT})
class WordsFilter(django_filters.CharFilter):
    """Words to look for."""


@extend_schema_field({"type": "string"})
class KnowledgeBaseFilter(django_filters.ModelChoiceFilter):
    def __init__(self) -> None:
        super().__init__(
            queryset=KnowledgeBase.objects.all(),
            to_field_name="slug",
            label="Its slug.",
        )


@extend_schema_field({"type": "string"})
class AudienceFilter(django_filters.ModelChoiceFilter):
    def __init__(self) -> None:
        super().__init__(to_field_name="slug", label="One of your audiences.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Audience]:
        return Audience.objects.visible_to(request.user)


@extend_schema_field({"type": "string"})
class TagFilter(django_filters.ModelChoiceFilter):
    def __init__(self, facet: Tag.Facet, **options: Any) -> None:  # noqa: ANN401  # the library's
        super().__init__(
            queryset=Tag.objects.filter(facet=facet),
            to_field_name="slug",
            label=f"Slug of a {facet.label}.",
            **options,
        )


@extend_schema_field({"type": "integer"})
class DocumentFilter(django_filters.ModelChoiceFilter):
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


class ConflictFilter(django_filters.FilterSet):
    state = django_filters.MultipleChoiceFilter(
        choices=Conflict.State.choices, label="May be given more than once."
    )
    kind = django_filters.MultipleChoiceFilter(
        choices=Conflict.Kind.choices, label="May be given more than once."
    )
    entry = _EntryFilter(method="filter_entry")

    def filter_entry(
        self, queryset: ConflictQuerySet, _name: str, value: Entry
    ) -> ConflictQuerySet:
        return queryset.of_entry(value.pk)
