from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import FileResponse, HttpResponseBase
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import rest
from accounts.roles import IsCuratorSomewhere, caller
from jobs.api import JobSerializer
from jobs.models import Job, JobQuerySet
from kb.archive.exports import (
    csv_response,
    csv_response_then,
    exported_file,
    get_exports,
    request_export,
)
from kb.entries.filters import EntryFilter
from kb.entries.models import Entry
from kb.interface.api import KnowledgeBaseField


class NewExportSerializer(rest.StrictSerializer):
    """The scope of an export."""

    knowledge_base = KnowledgeBaseField(required=False, help_text="All by default.")
    complete = rest.StrictBooleanField(
        required=False,
        default=False,
        help_text="Everything, not only what you may see; needs the role admin.",
    )


class _FileRenderer(BaseRenderer):
    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Any = None,
    ) -> bytes:
        return bytes(JSONRenderer().render(data))


class ZipRenderer(_FileRenderer):
    media_type = "application/zip"
    format = "zip"
    charset = None


class CSVRenderer(_FileRenderer):
    media_type = "text/csv"
    format = "csv"


@extend_schema_view(list=extend_schema(summary="List your exports"))
class ExportViewSet(rest.RowViewSet[Job]):
    """Archives that the caller requested, newest first; each is a job."""

    permission_classes = [IsCuratorSomewhere]
    serializer_class = JobSerializer
    filter_backends = []
    lookup_url_kwarg = "job_id"
    lookup_value_converter = "uuid"

    def get_queryset(self) -> JobQuerySet:
        if getattr(self, "swagger_fake_view", False):
            return Job.objects.none()
        return get_exports(caller(self.request)).select_related("owner")

    @extend_schema(
        summary="Export knowledge",
        request=NewExportSerializer,
        responses={202: JobSerializer, 403: "A complete one needs the role admin."},
    )
    def create(self, request: Request) -> Response:
        """Start making an archive: follow the job, then fetch `/exports/{id}/file`."""
        body = self.validated(NewExportSerializer)
        chosen = body.get("knowledge_base")
        job = request_export(
            by=caller(request),
            knowledge_base="" if chosen is None else chosen.slug,
            complete=body["complete"],
        )
        return Response(JobSerializer(job).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(
        summary="Fetch an export",
        responses={
            (200, "application/zip"): OpenApiTypes.BINARY,
            409: "It is not finished yet, or it failed.",
        },
    )
    @action(detail=True, renderer_classes=[ZipRenderer, JSONRenderer])
    def file(self, request: Request, job_id: UUID) -> HttpResponseBase:
        """Fetch the archive that an export made; it is deleted after some days."""
        path = exported_file(job_id, by=caller(request))
        return FileResponse(
            path.open("rb"), as_attachment=True, filename="knowledge.zip"
        )


class EntryTableFilter(EntryFilter):
    as_of = rest.MomentFilter(
        method="filter_moment",
        label="A past moment: entries as they were then. Excludes all other filters "
        "except knowledge_base.",
    )

    def filter_moment(
        self, queryset: QuerySet[Entry], _name: str, _value: datetime
    ) -> QuerySet[Entry]:
        return queryset  # the entries of that moment are selected elsewhere


class EntryTableView(rest.KnownQueryView, GenericAPIView[Entry]):
    """Entries as a table for a spreadsheet."""

    permission_classes = [IsCuratorSomewhere]
    throttle_scope = "user"
    renderer_classes = [CSVRenderer, JSONRenderer]
    filterset_class = EntryTableFilter
    pagination_class = None
    queryset = Entry.objects.all()

    @extend_schema(
        operation_id="entries_table",
        filters=True,
        summary="Fetch entries as CSV",
        request=None,
        responses={
            (200, "text/csv"): OpenApiTypes.STR,
            404: "Unknown `format`.",
        },
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Fetch all matching entries that the caller may see and curates, as CSV.

        A cell that a spreadsheet would execute as a formula begins with an apostrophe.
        With `as_of` the entries are as they were then; it includes those that the
        caller may see today and could have seen then.
        """
        entries = self.filter_queryset(Entry.objects.visible_to(request.user))
        if "as_of" not in request.query_params:
            return csv_response(entries, request.user)
        nothing = Entry.objects.none()
        query = EntryTableFilter(request.query_params, nothing, request=request).form
        query.is_valid()  # invalid values were rejected above
        at = query.cleaned_data["as_of"]
        others = request.query_params.keys() - {"as_of", "knowledge_base", "format"}
        if others or at is None or at > timezone.now():
            raise ValidationError(
                {
                    "as_of": "Give a past moment, and no filter but knowledge_base: "
                    f"{', '.join(sorted(others)) or at} is not allowed."
                }
            )
        slug = request.query_params.get("knowledge_base", "")
        return csv_response_then(request.user, at=at, knowledge_base=slug)
