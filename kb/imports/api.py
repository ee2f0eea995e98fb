from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import IsCurator, caller
from kb.audiences.models import Audience
from kb.documents.models import KnowledgeBase
from kb.documents.services import SOURCE_LIMIT, TITLE_LIMIT
from kb.exceptions import ImportNotFoundError
from kb.imports.models import Import
from kb.imports.services import Upload, enqueue_import, start_import
from kb.interface.api import (
    AudienceField,
    KnowledgeBaseField,
    TagField,
    knowledge_base_of,
)
from kb.tags.models import Tag


class ExampleSerializer(serializers.Serializer[dict[str, str]]):
    """One of the facts that were counted."""

    text = serializers.CharField()
    place = serializers.CharField(required=False)
    question = serializers.CharField(required=False)
    before = serializers.CharField(
        required=False, help_text="What the entry says now, where it is to be changed."
    )


class BadRowSerializer(serializers.Serializer[dict[str, str]]):
    """What could not be read, and why."""

    place = serializers.CharField(help_text="Such as line 7.")
    reason = serializers.CharField()


class ImportSerializer(serializers.ModelSerializer[Import]):
    """An import: how it is to be read, and what came or would come of it."""

    knowledge_base = serializers.SlugRelatedField[KnowledgeBase](
        slug_field="slug", read_only=True
    )
    audience = serializers.SlugRelatedField[Audience](slug_field="slug", read_only=True)
    job = serializers.UUIDField(
        source="job_id",
        read_only=True,
        allow_null=True,
        help_text="The job that plans or applies it: progress, cancel, retry.",
    )
    verify = serializers.SerializerMethodField(
        help_text="Whether who imports it vouches for what it says."
    )
    counts = serializers.DictField(
        child=serializers.IntegerField(),
        read_only=True,
        help_text="read, created, changed, restored, retired, unchanged, repeated, bad.",
    )
    examples = serializers.DictField(
        child=ExampleSerializer(many=True), read_only=True, help_text="By count."
    )
    bad_rows = BadRowSerializer(many=True, read_only=True, help_text="The first 100.")
    notes = serializers.ListField(child=serializers.CharField(), read_only=True)

    class Meta:
        model = Import
        fields = [
            "id", "state", "error", "job", "file_name", "format", "knowledge_base",
            "audience", "source", "document_title", "verify", "counts", "examples",
            "bad_rows", "notes", "created_at", "applied_at",
        ]  # fmt: skip
        read_only_fields = fields

    def get_verify(self, row: Import) -> bool:
        """Tell whether somebody vouches."""
        return row.verify_as_id is not None


class NewImportSerializer(serializers.Serializer[Upload]):
    """A file to be imported, as a form with a file."""

    file = serializers.FileField(max_length=200)
    audience = AudienceField(help_text="Who may see what it brings.")
    knowledge_base = KnowledgeBaseField(
        required=False, help_text="By default the only one there is."
    )
    source = serializers.CharField(  # type: ignore[assignment]  # the document's
        max_length=SOURCE_LIMIT,
        required=False,
        default="",
        help_text="Names the document for later versions; by default the file's name.",
    )
    title = serializers.CharField(max_length=TITLE_LIMIT, required=False, default="")
    product_line = TagField(Tag.Facet.PRODUCT_LINE, default=None, allow_null=True)
    line_of_business = TagField(
        Tag.Facet.LINE_OF_BUSINESS, default=None, allow_null=True
    )
    verify = serializers.BooleanField(
        default=False, help_text="You vouch for all that it says."
    )
    dry_run = serializers.BooleanField(
        default=False, help_text="Only plan it; it may be applied afterwards."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "knowledge_base" not in attrs:
            attrs["knowledge_base"] = knowledge_base_of({})
        return attrs

    def upload(self) -> Upload:
        """Return the validated file with its options."""
        values = dict(self.validated_data)
        file: Any = values.pop("file")
        del values["dry_run"]
        return Upload(file=file.file, name=file.name or "", **values)


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
