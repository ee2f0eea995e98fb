from django.db import transaction
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import IsCurator
from kb.exceptions import ImportNotFoundError
from kb.models import Import
from kb.services.imports import enqueue_import, start_import

from .import_serializers import ImportSerializer, NewImportSerializer
from .permissions import caller


class _Imports(GenericAPIView[Import]):
    permission_classes = [IsCurator]
    throttle_scope = "user"
    serializer_class = ImportSerializer

    def get_queryset(self) -> QuerySet[Import]:
        return Import.objects.visible_to(self.request.user).select_related(
            "knowledge_base", "audience"
        )

    def find(self, import_id: int) -> Import:
        row = self.get_queryset().filter(pk=import_id).first()
        if row is None:
            raise ImportNotFoundError(
                f"There is no import {import_id} that you may see."
            )
        return row

    def accepted(self, row: Import) -> Response:
        shown = ImportSerializer(self.find(row.pk))
        return Response(shown.data, status=status.HTTP_202_ACCEPTED)


class ImportListView(_Imports, ListAPIView[Import]):
    """Imports, newest first."""

    parser_classes = [MultiPartParser]
    filterset_fields = ["state"]

    @extend_schema(operation_id="imports_list")
    def get(self, request: Request) -> Response:
        """List one's own imports, newest first."""
        return self.list(request)

    @extend_schema(
        operation_id="imports_create",
        request={"multipart/form-data": NewImportSerializer},
        responses={202: ImportSerializer},
    )
    def post(self, request: Request) -> Response:
        """Import a file in the background, or only plan it (`dry_run`).

        A file whose source was imported before is a new version of it: only what
        changed is changed. The job tells how far it is.
        """
        body = NewImportSerializer(data=request.data, context={"request": request})
        body.is_valid(raise_exception=True)
        user = caller(request)
        with transaction.atomic():
            row = start_import(body.upload(), by=user)
            enqueue_import(row, apply=not body.validated_data["dry_run"], by=user)
        return self.accepted(row)


class ImportView(_Imports):
    """One import."""

    @extend_schema(operation_id="imports_read", responses=ImportSerializer)
    def get(self, request: Request, import_id: int) -> Response:
        """Read an import with its counts, examples and bad rows."""
        return Response(ImportSerializer(self.find(import_id)).data)


class ImportApplyView(_Imports):
    """Applies a planned import."""

    @extend_schema(
        operation_id="imports_apply", request=None, responses={202: ImportSerializer}
    )
    def post(self, request: Request, import_id: int) -> Response:
        """Apply a planned import in the background; asking twice is asking once."""
        row = self.find(import_id)
        enqueue_import(row, apply=True, by=caller(request))
        return self.accepted(row)
