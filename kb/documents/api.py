from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import serializers, status
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import caller
from accounts.strict_fields import (
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)
from kb.audiences.models import Audience
from kb.documents import services as documents
from kb.documents.models import Document, KnowledgeBase
from kb.documents.services import create_document, edit_document
from kb.exceptions import DocumentNotFoundError
from kb.interface.api import (
    AgentReadsCuratorWrites,
    AudienceField,
    DocumentFilter,
    KnowledgeBaseField,
    knowledge_base_of,
)


class SectionSerializer(serializers.Serializer[documents.SectionNode]):
    """A heading with what stands below it, in order."""

    id = serializers.IntegerField()
    heading = serializers.CharField()

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        fields = super().get_fields()
        fields["sections"] = SectionSerializer(many=True, source="children")
        return fields


class SectionNodeSerializer(StrictSerializer):
    """A heading to be written; with the `id` of a section it is, or without for a new one."""

    id = StrictIntegerField(required=False, min_value=1)
    heading = StrictCharField(max_length=documents.HEADING_LIMIT)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
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
        if "knowledge_base" not in attrs:
            attrs["knowledge_base"] = knowledge_base_of(attrs)
        return attrs


def _node(parsed: dict[str, Any]) -> documents.SectionNode:
    return documents.SectionNode(
        heading=parsed["heading"],
        children=tuple(_node(each) for each in parsed.get("sections", [])),
        id=parsed.get("id"),
    )


def _find(request: Request, document_id: int) -> Document:
    document = (
        Document.objects.visible_to(request.user)
        .select_related("knowledge_base", "audience", "created_by")
        .filter(pk=document_id)
        .first()
    )
    if document is None:
        raise DocumentNotFoundError(
            f"There is no document {document_id} that you may see."
        )
    return document


@extend_schema_view(
    get=extend_schema(operation_id="documents_list", summary="List documents")
)
class DocumentListView(ListAPIView[Document]):
    """The documents that the caller may see, newest first."""

    permission_classes = [AgentReadsCuratorWrites]
    throttle_scope = "user"
    serializer_class = DocumentSerializer
    filterset_class = DocumentFilter

    def get_queryset(self) -> QuerySet[Document]:
        return Document.objects.visible_to(self.request.user).select_related(
            "knowledge_base", "audience", "created_by"
        )

    @extend_schema(
        operation_id="documents_create",
        summary="Make a document",
        request=NewDocumentSerializer,
        responses={201: DocumentDetailSerializer},
    )
    def post(self, request: Request) -> Response:
        """Make a document with the tree of its sections."""
        body = NewDocumentSerializer(data=request.data, context={"request": request})
        body.is_valid(raise_exception=True)
        document = create_document(author=caller(request), **body.validated_data)
        shown = DocumentDetailSerializer(_find(request, document.pk))
        return Response(shown.data, status=status.HTTP_201_CREATED)


class DocumentView(GenericAPIView[Document]):
    """One document with its sections."""

    permission_classes = [AgentReadsCuratorWrites]
    throttle_scope = "user"
    serializer_class = DocumentDetailSerializer
    queryset = Document.objects.none()

    @extend_schema(
        operation_id="documents_read",
        summary="Read a document",
        responses=DocumentDetailSerializer,
    )
    def get(self, request: Request, document_id: int) -> Response:
        """Return a document with the tree of its sections."""
        return Response(DocumentDetailSerializer(_find(request, document_id)).data)

    @extend_schema(
        operation_id="documents_change",
        summary="Change a document",
        request=DocumentChangesSerializer,
        responses=DocumentDetailSerializer,
    )
    def patch(self, request: Request, document_id: int) -> Response:
        """Change what is given; entries keep their audience unless `entries_follow`."""
        document = _find(request, document_id)
        body = DocumentChangesSerializer(
            data=request.data, context={"request": request}
        )
        body.is_valid(raise_exception=True)
        edit_document(
            document_id=document.pk, author=caller(request), **body.validated_data
        )
        return Response(DocumentDetailSerializer(_find(request, document_id)).data)
