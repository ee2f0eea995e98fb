from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import status
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from kb.exceptions import DocumentNotFoundError
from kb.models import Document
from kb.services.documents import create_document, edit_document

from .document_serializers import (
    DocumentChangesSerializer,
    DocumentDetailSerializer,
    DocumentSerializer,
    NewDocumentSerializer,
)
from .filters import DocumentFilter
from .permissions import AgentReadsCuratorWrites, caller


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
        """Return what the caller may see, ready to be shown."""
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
