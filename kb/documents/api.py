from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import rest
from accounts.roles import caller
from kb.documents import services as documents
from kb.documents.models import Document, DocumentQuerySet
from kb.exceptions import DocumentNotFoundError
from kb.interface import api


class SectionSerializer(serializers.Serializer[documents.SectionNode]):
    """A heading with its subsections, in order."""

    id = serializers.IntegerField()
    heading = serializers.CharField()

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        fields = super().get_fields()
        fields["sections"] = SectionSerializer(many=True, source="children")
        return fields


class SectionNodeSerializer(rest.StrictSerializer):
    """A heading to write, with the `id` of its section, or without for a new one."""

    id = rest.StrictIntegerField(required=False, min_value=1)
    heading = rest.StrictCharField(max_length=documents.HEADING_LIMIT)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        fields = super().get_fields()
        fields["sections"] = SectionNodeSerializer(many=True, required=False)
        return fields

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        # In a partial update, the library makes the fields of nested serializers
        # optional too.
        if "heading" not in attrs:
            heading = self.fields["heading"]
            raise serializers.ValidationError(
                {"heading": heading.error_messages["required"]}
            )
        return attrs


class DocumentSerializer(api.ReferringSerializer):
    """A document without its sections."""

    class Meta:
        model = Document
        fields = [
            "id", "knowledge_base", "title", "source", "audience", "created_by",
            "created_at", "updated_at",
        ]  # fmt: skip


class DocumentDetailSerializer(DocumentSerializer):
    """A document with the tree of its sections."""

    sections = serializers.SerializerMethodField()

    class Meta(DocumentSerializer.Meta):
        fields = [*DocumentSerializer.Meta.fields, "sections"]

    @extend_schema_field(SectionSerializer(many=True))
    def get_sections(self, document: Document) -> Any:
        tree = documents.section_tree(list(document.sections.all()))
        return [SectionSerializer().to_representation(node) for node in tree]


class DocumentChangesSerializer(api.KnowledgeSerializer):
    """The fields to change; the others stay. `sections` is the whole tree."""

    entries_follow = rest.StrictBooleanField(
        required=False,
        help_text="Whether entries of the previous audience get the new one too.",
    )
    sections = SectionNodeSerializer(
        many=True,
        required=False,
        help_text="The whole tree: sections not in it are deleted, their entries stay.",
    )

    class Meta:
        model = Document
        fields = ["title", "source", "audience", "entries_follow", "sections"]

    def to_internal_value(self, data: object) -> Any:
        if isinstance(data, Mapping):
            _check_count(data.get("sections"))
        return super().to_internal_value(data)

    def validate_sections(
        self, value: list[dict[str, Any]]
    ) -> tuple[documents.SectionNode, ...]:
        return tuple(_node(each) for each in value)


class NewDocumentSerializer(DocumentChangesSerializer):
    """A new document."""

    entries_follow = None  # type: ignore[assignment]  # a new document has no entries
    knowledge_base = api.KnowledgeBaseField(
        required=False, help_text="By default the only one there is."
    )

    class Meta(DocumentChangesSerializer.Meta):
        fields = ["title", "source", "audience", "sections", "knowledge_base"]
        extra_kwargs = {
            "audience": {"help_text": "The audience of entries that are added to it."}
        }


def _check_count(tree: object) -> None:
    """Raise for a tree of too many sections before any of them is validated."""
    count, level = 0, [tree]
    while level:
        nodes = [node for each in level if isinstance(each, list) for node in each]
        count += len(nodes)
        if count > documents.SECTIONS_LIMIT:
            raise serializers.ValidationError(
                {
                    "sections": [
                        f"more than {documents.SECTIONS_LIMIT} sections; split the "
                        "document."
                    ]
                }
            )
        level = [node.get("sections") for node in nodes if isinstance(node, Mapping)]


def _node(parsed: dict[str, Any]) -> documents.SectionNode:
    return documents.SectionNode(
        heading=parsed["heading"],
        children=tuple(_node(each) for each in parsed.get("sections", [])),
        id=parsed.get("id"),
    )


class DocumentFilter(rest.StrictFilterSet):
    knowledge_base = api.KnowledgeBaseFilter()
    audience = api.AudienceFilter()
    source = rest.SlugFilter(label="Its source, as given to an import.")
    q = api.WordsFilter(
        field_name="title",
        lookup_expr="icontains",
        max_length=api.WORDS_LIMIT,
        label="A part of the title.",
    )


@extend_schema_view(list=extend_schema(summary="List documents"))
class DocumentViewSet(rest.RowViewSet[Document]):
    """The documents that the caller may see, newest first."""

    permission_classes = [api.AgentReadsCuratorWrites]
    serializer_class = DocumentSerializer
    filterset_class = DocumentFilter
    lookup_url_kwarg = "document_id"
    not_found = DocumentNotFoundError

    def get_queryset(self) -> DocumentQuerySet:
        return Document.objects.visible_to(self.request.user).select_related(
            "knowledge_base", "audience", "created_by"
        )

    @extend_schema(
        summary="Create a document",
        request=NewDocumentSerializer,
        responses={201: DocumentDetailSerializer},
    )
    def create(self, request: Request) -> Response:
        """Create a document with its tree of sections."""
        body = self.validated(NewDocumentSerializer)
        made = documents.create_document(author=caller(request), **body)
        return Response(
            DocumentDetailSerializer(made).data, status=status.HTTP_201_CREATED
        )

    @extend_schema(summary="Read a document", responses=DocumentDetailSerializer)
    def retrieve(self, request: Request, document_id: int) -> Response:
        """Return a document with its tree of sections."""
        return Response(DocumentDetailSerializer(self.get_object()).data)

    @extend_schema(
        summary="Change a document",
        request=DocumentChangesSerializer,
        responses=DocumentDetailSerializer,
    )
    def partial_update(self, request: Request, document_id: int) -> Response:
        """Change given fields; entries keep their audience unless `entries_follow`."""
        self.get_object()
        changes = self.validated(DocumentChangesSerializer)
        documents.edit_document(
            document_id=document_id, author=caller(request), **changes
        )
        return self.retrieve(request, document_id)
