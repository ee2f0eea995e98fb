"""Rows named in a request: rows that the caller may not see do not exist."""

from functools import partial
from typing import Any, NoReturn

import django_filters
from django import forms
from django.contrib.auth.models import User
from django.db.models import Choices, QuerySet
from django.http import HttpRequest
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from accounts import rest
from accounts.roles import HasRole, Role
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
"""The field that names a row where it is shown or exported; other models use the id."""


class _NamedField(rest.StrictSlugField):
    queryset: Any

    def __init__(self, **options: Any) -> None:
        super().__init__(slug_field=NAMED_BY[self.queryset.model], **options)


class KnowledgeBaseField(_NamedField):
    queryset = KnowledgeBase.objects.all()


class AudienceField(_NamedField):
    queryset = Audience.objects.all()

    def get_queryset(self) -> QuerySet[Any]:
        return Audience.objects.visible_to(self.context["request"].user)


class DocumentField(rest.StrictPrimaryKeyField):
    queryset = Document.objects.all()

    def get_queryset(self) -> QuerySet[Any]:
        return Document.objects.visible_to(self.context["request"].user).select_related(
            "knowledge_base", "audience"
        )


class SectionField(rest.StrictPrimaryKeyField):
    queryset = Section.objects.all()

    def get_queryset(self) -> QuerySet[Any]:
        return Section.objects.filter(
            document__in=Document.objects.visible_to(self.context["request"].user)
        ).select_related("document__knowledge_base", "document__audience")


class TagField(_NamedField):
    queryset = Tag.objects.all()

    def __init__(self, facet: Tag.Facet, **options: Any) -> None:
        self._facet = facet
        super().__init__(help_text=f"Slug of a {facet.label}.", **options)

    def get_queryset(self) -> QuerySet[Any]:
        return Tag.objects.filter(facet=self._facet)


class UserField(_NamedField):
    queryset = User.objects.filter(is_active=True)

    def fail_missing(self, rows: QuerySet[Any], slug: str) -> NoReturn:
        # Not every caller may know who has an account.
        raise serializers.ValidationError(f"There is no active user {slug[:80]!a}.")


class ReferringSerializer(rest.ShownSerializer[Any]):
    """Shows the rows that a row refers to by `NAMED_BY`."""

    def build_relational_field(
        self, field_name: str, relation_info: Any
    ) -> tuple[type[Any], dict[str, Any]]:
        name = NAMED_BY.get(relation_info.related_model)
        if name is None or relation_info.to_many:
            return super().build_relational_field(field_name, relation_info)
        nullable = relation_info.model_field.null
        return serializers.SlugRelatedField, {
            "slug_field": name,
            "read_only": True,
            "allow_null": nullable,
            "help_text": "A username." if name == "username" else "",
        }


class InBaseSerializer(rest.StrictSerializer):
    """Input for a knowledge base, which may be omitted if there is only one."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "knowledge_base" in self.fields and "knowledge_base" not in attrs:
            attrs["knowledge_base"] = find_knowledge_base(attrs)
        return attrs


class KnowledgeSerializer(InBaseSerializer, rest.StrictModelSerializer):
    """Input for a row; it may only refer to rows that the caller may see."""

    def build_relational_field(
        self, field_name: str, relation_info: Any
    ) -> tuple[Any, dict[str, Any]]:
        _, options = super().build_relational_field(field_name, relation_info)
        kept: dict[str, Any] = {
            k: options[k] for k in ("required", "allow_null") if k in options
        }
        if relation_info.related_model is Tag:
            return partial(TagField, Tag.Facet(field_name)), kept
        return _WRITTEN_BY[relation_info.related_model], kept


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
    bases = KnowledgeBase.objects.in_use()
    found = list(bases[:2])
    if len(found) != 1:
        slugs = rest.listed_slugs(bases, "slug")
        said = (
            f"There are several; name the one it belongs to: {slugs}."
            if found
            else "There is none; create one in the admin first."
        )
        raise ValidationError({"knowledge_base": [said]})
    return found[0]


class AgentReadsCuratorWrites(HasRole):
    """Permission on knowledge; services restrict writers to their roles' bases."""

    least, reads = Role.CURATOR, Role.AGENT
    somewhere = True


class AgentReadsAdminWrites(HasRole):
    """Permission on audiences, which decide who sees what."""

    least, reads = Role.ADMIN, Role.AGENT


WORDS_LIMIT = 200


@extend_schema_field({"type": "string", "minLength": 1, "maxLength": WORDS_LIMIT})
class WordsFilter(django_filters.CharFilter):
    """Words to search for."""


class _SlugChoiceField(django_filters.fields.ModelChoiceField):
    def to_python(self, value: Any) -> Any:
        try:
            return super().to_python(value)
        except forms.ValidationError as error:
            if error.code != "invalid_choice":
                raise
            rows: Any = self.queryset
            said = rest.no_such_row(rows, "slug", value)
            # The library formats error messages with %.
            raise forms.ValidationError("%(said)s", params={"said": said}) from error


@extend_schema_field({"type": "string", "minLength": 1})
class KnowledgeBaseFilter(django_filters.ModelChoiceFilter):
    field_class = _SlugChoiceField

    def __init__(self, field_name: str = "knowledge_base") -> None:
        super().__init__(
            field_name=field_name,
            queryset=KnowledgeBase.objects.all(),
            to_field_name="slug",
            label="Its slug.",
        )


class ChoicesFilter(django_filters.MultipleChoiceFilter):
    def __init__(self, choices: type[Choices]) -> None:
        label = "May be given more than once."
        super().__init__(choices=choices.choices, label=label)


class _VisibleFilter(django_filters.ModelChoiceFilter):
    """A filter by a row of the manager `rows` that the caller may see."""

    rows: Any

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return self.rows.visible_to(request.user)  # type: ignore[no-any-return]  # of any model


@extend_schema_field({"type": "string", "minLength": 1})
class AudienceFilter(_VisibleFilter):
    field_class = _SlugChoiceField
    rows = Audience.objects

    def __init__(self) -> None:
        super().__init__(to_field_name="slug", label="One of your audiences.")


@extend_schema_field({"type": "string", "minLength": 1})
class TagFilter(django_filters.ModelChoiceFilter):
    field_class = _SlugChoiceField

    def __init__(self, facet: Tag.Facet | None = None, **options: Any) -> None:
        rows = Tag.objects.all()
        super().__init__(
            queryset=rows.filter(facet=facet) if facet else rows,
            to_field_name="slug",
            label=f"Slug of a {facet.label if facet else 'tag'}.",
            **options,
        )


@extend_schema_field({"type": "integer"})
class DocumentFilter(_VisibleFilter):
    rows = Document.objects

    def __init__(self) -> None:
        super().__init__(label="The id of a document that you may see.")


@extend_schema_field({"type": "integer"})
class _EntryFilter(_VisibleFilter):
    rows = Entry.objects


class ConflictFilter(rest.StrictFilterSet):
    state = ChoicesFilter(Conflict.State)
    kind = ChoicesFilter(Conflict.Kind)
    # Both entries belong to one knowledge base.
    knowledge_base = KnowledgeBaseFilter("first__knowledge_base")
    entry = _EntryFilter(
        method="filter_entry", label="The id of an entry that you may see."
    )

    def filter_entry(
        self, queryset: ConflictQuerySet, _name: str, value: Entry
    ) -> ConflictQuerySet:
        return queryset.of_entry(value.pk)
