from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.api.strict_fields import (
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)
from kb.models import Audience, Document, KnowledgeBase
from kb.services import documents

from .fields import AudienceField, KnowledgeBaseField, knowledge_base_of


class SectionSerializer(serializers.Serializer[documents.SectionNode]):
    """A heading with what stands below it, in order."""

    id = serializers.IntegerField()
    heading = serializers.CharField()

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Add the sections below, which have the same shape."""
        fields = super().get_fields()
        fields["sections"] = SectionSerializer(many=True, source="children")
        return fields


class SectionNodeSerializer(StrictSerializer):
    """A heading to be written; with the `id` of a section it is, or without for a new one."""

    id = StrictIntegerField(required=False, min_value=1)
    heading = StrictCharField(max_length=documents.HEADING_LIMIT)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Add the sections below, which have the same shape."""
        fields = super().get_fields()
        fields["sections"] = SectionNodeSerializer(many=True, required=False)
        return fields


class DocumentSerializer(serializers.ModelSerializer[Document]):
    """A document without its sections."""

    knowledge_base = serializers.SlugRelatedField[KnowledgeBase](
        slug_field="slug", read_only=True
    )
    audience = serializers.SlugRelatedField[Audience](slug_field="slug", read_only=True)
    created_by = serializers.CharField(
        source="created_by.username", default=None, read_only=True, allow_null=True
    )

    class Meta:
        model = Document
        fields = [
            "id",
            "knowledge_base",
            "title",
            "source",
            "audience",
            "created_by",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields


class DocumentDetailSerializer(DocumentSerializer):
    """A document with the tree of its sections."""

    sections = serializers.SerializerMethodField()

    class Meta(DocumentSerializer.Meta):
        fields = [*DocumentSerializer.Meta.fields, "sections"]
        read_only_fields = fields

    @extend_schema_field(SectionSerializer(many=True))
    def get_sections(self, document: Document) -> Any:  # noqa: ANN401  # JSON
        """Return the tree, from one query."""
        tree = documents.section_tree(list(document.sections.all()))
        return [SectionSerializer().to_representation(node) for node in tree]


class DocumentChangesSerializer(StrictSerializer):
    """What to change; what is left out stays. `sections` is the whole tree."""

    title = StrictCharField(max_length=documents.TITLE_LIMIT, required=False)
    source = StrictCharField(  # type: ignore[assignment]  # the document's, no field's
        max_length=documents.SOURCE_LIMIT, allow_blank=True, required=False
    )
    audience = AudienceField(required=False)
    entries_follow = StrictBooleanField(
        required=False,
        help_text="Whether entries of the audience that it had get the new one too.",
    )
    sections = SectionNodeSerializer(
        many=True,
        required=False,
        help_text="The whole tree: sections it does not name go, their entries stay.",
    )

    def validate_sections(
        self, value: list[dict[str, Any]]
    ) -> tuple[documents.SectionNode, ...]:
        """Turn the parsed tree into nodes."""
        return tuple(_node(each) for each in value)


class NewDocumentSerializer(DocumentChangesSerializer):
    """A document to be written."""

    title = StrictCharField(max_length=documents.TITLE_LIMIT)
    audience = AudienceField(help_text="The audience that its new entries get.")
    entries_follow = None  # type: ignore[assignment]  # there are none yet
    knowledge_base = KnowledgeBaseField(
        required=False, help_text="By default the only one there is."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Find the knowledge base that was not named."""
        if "knowledge_base" not in attrs:
            attrs["knowledge_base"] = knowledge_base_of(attrs)
        return attrs


def _node(parsed: dict[str, Any]) -> documents.SectionNode:
    return documents.SectionNode(
        heading=parsed["heading"],
        children=tuple(_node(each) for each in parsed.get("sections", [])),
        id=parsed.get("id"),
    )
