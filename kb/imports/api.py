from typing import Any

import django_filters
from django.db import transaction
from django.utils.functional import cached_property
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.mixins import RetrieveModelMixin
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.pagination import NewestFirstPagination
from accounts.rest import RowViewSet, ShownSerializer, StrictFilterSet
from accounts.roles import IsCuratorSomewhere, caller
from kb.exceptions import ImportNotFoundError
from kb.imports.decisions import Example, examples_for
from kb.imports.models import Import, ImportQuerySet, PlannedEntry
from kb.imports.services import Upload, enqueue_import, start_import
from kb.interface.api import (
    AudienceField,
    InBaseSerializer,
    KnowledgeBaseField,
    ReferringSerializer,
    TagField,
)
from kb.tags.models import Tag
from kb.text.cleaning import SOURCE_LIMIT, TITLE_LIMIT


class ExampleSerializer(serializers.Serializer[dict[str, str]]):
    """An example of the facts counted under an action."""

    text = serializers.CharField()
    place = serializers.CharField(required=False)
    question = serializers.CharField(required=False)
    before = serializers.CharField(
        required=False, help_text="The entry's current text, if it would be changed."
    )


class PlannedEntrySerializer(ShownSerializer[PlannedEntry]):
    """What a planned import would do to one entry."""

    class Meta:
        model = PlannedEntry
        fields = [
            "action", "place", "section", "entry", "own_key", "question", "text",
            "also_asked", "before", "is_edited",
        ]  # fmt: skip


class _InOrder(NewestFirstPagination):
    ordering = ("id",)


class BadRowSerializer(serializers.Serializer[dict[str, str]]):
    """A row that could not be read, with the reason."""

    place = serializers.CharField(help_text="Such as line 7.")
    reason = serializers.CharField()


class ImportSerializer(ReferringSerializer):
    """An import: how the file is read, and what it changes or would change."""

    job = serializers.UUIDField(
        source="job_id",
        read_only=True,
        allow_null=True,
        help_text="The job that plans or applies it: progress, cancel, retry.",
    )
    verify = serializers.SerializerMethodField(
        help_text="Whether the importing user verifies its entries."
    )
    counts = serializers.DictField(
        child=serializers.IntegerField(),
        read_only=True,
        help_text="read, created, changed, restored, retired, unchanged, repeated, bad.",
    )
    examples = serializers.SerializerMethodField(help_text="By count.")
    bad_rows = BadRowSerializer(many=True, read_only=True, help_text="The first 100.")
    notes = serializers.ListField(
        child=serializers.CharField(),
        read_only=True,
        help_text="Notes on the file as a whole: columns that are not read, why "
        "nothing was retired, what happens to entries that people edited.",
    )

    class Meta:
        model = Import
        fields = [
            "id", "state", "error", "job", "file_name", "format", "knowledge_base",
            "audience", "source", "document_title", "verify", "counts", "examples",
            "bad_rows", "notes", "created_at", "applied_at",
        ]  # fmt: skip

    def get_verify(self, row: Import) -> bool:
        return row.verify_as_id is not None

    @extend_schema_field(serializers.DictField(child=ExampleSerializer(many=True)))
    def get_examples(self, row: Import) -> dict[str, object]:
        return {
            action: [ExampleSerializer(each).data for each in some]
            for action, some in self._examples[row.pk].items()
        }

    @cached_property
    def _examples(self) -> dict[int, dict[str, list[Example]]]:
        """The examples of all rows shown, from one query for their entries."""
        shown: Any = self.root.instance  # a list of rows, or a single one
        rows = [shown] if isinstance(shown, Import) else shown
        return examples_for(rows, self.context["request"].user)


class NewImportSerializer(InBaseSerializer):
    """A file to import, sent as multipart form data."""

    file = serializers.FileField(max_length=200)
    audience = AudienceField(help_text="Who may see its entries.")
    knowledge_base = KnowledgeBaseField(
        required=False, help_text="By default the only one there is."
    )
    source = serializers.CharField(  # type: ignore[assignment]  # the document's
        max_length=SOURCE_LIMIT,
        required=False,
        default="",
        help_text="Identifies the document for later versions; by default its name.",
    )
    title = serializers.CharField(max_length=TITLE_LIMIT, required=False, default="")
    product_line = TagField(Tag.Facet.PRODUCT_LINE, default=None, allow_null=True)
    line_of_business = TagField(
        Tag.Facet.LINE_OF_BUSINESS, default=None, allow_null=True
    )
    verify = serializers.BooleanField(
        default=False, help_text="You verify all of its entries."
    )
    dry_run = serializers.BooleanField(
        default=False, help_text="Only plan it; it may be applied afterwards."
    )


class ImportFilter(StrictFilterSet):
    state = django_filters.ChoiceFilter(choices=Import.State.choices)


@extend_schema_view(
    list=extend_schema(summary="List your imports"),
    retrieve=extend_schema(summary="Read an import"),
)
class ImportViewSet(RetrieveModelMixin, RowViewSet[Import]):
    """The caller's own imports with counts, examples and bad rows, newest first."""

    permission_classes = [IsCuratorSomewhere]
    serializer_class = ImportSerializer
    parser_classes = [MultiPartParser]
    filterset_class = ImportFilter
    lookup_url_kwarg = "import_id"
    not_found = ImportNotFoundError

    def get_queryset(self) -> ImportQuerySet:
        return Import.objects.visible_to(self.request.user).select_related(
            "knowledge_base", "audience"
        )

    @extend_schema(
        request={"multipart/form-data": NewImportSerializer},
        responses={202: ImportSerializer},
    )
    def create(self, request: Request) -> Response:
        """Import a file in the background, or only plan it (`dry_run`).

        A file whose source was imported before is a new version of that document: only
        the differences are written. The job shows the progress.
        """
        values = self.validated(NewImportSerializer)
        applies = not values.pop("dry_run")
        file = values.pop("file")
        upload = Upload(file=file.file, name=file.name or "", **values)
        with transaction.atomic():
            row = start_import(upload, by=caller(request))
            enqueue_import(row, apply=applies, by=caller(request))
        self.kwargs["import_id"] = row.pk
        return self.row_response(status=status.HTTP_202_ACCEPTED)

    @extend_schema(request=None, responses={202: ImportSerializer})
    @action(detail=True, methods=["post"])
    def apply(self, request: Request, import_id: int) -> Response:
        """Apply a planned import in the background; a second request changes nothing."""
        enqueue_import(self.get_object(), apply=True, by=caller(request))
        return self.row_response(status=status.HTTP_202_ACCEPTED)

    @extend_schema(
        summary="List what a planned import would do",
        responses=PlannedEntrySerializer(many=True),
    )
    @action(
        detail=True,
        filter_backends=[],
        serializer_class=PlannedEntrySerializer,
        pagination_class=_InOrder,
    )
    def entries(self, request: Request, import_id: int) -> Response:
        """List every entry that it would create, change, restore or retire, in full.

        Empty once the import is applied. Leaves out entries that you may no longer see.
        """
        rows = self.get_object().planned.visible_to(request.user)
        page = self.paginate_queryset(rows)  # type: ignore[arg-type]  # planned entries here
        return self.get_paginated_response(self.get_serializer(page, many=True).data)
