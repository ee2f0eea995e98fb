"""Entries and their revisions over REST.

A change states the revision it is based on: `If-Match` with the entity tag, or
`revision` in the body.
"""

import re
from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.rest import RowViewSet, validated
from accounts.roles import caller
from kb.audiences.models import Audience
from kb.entries import states
from kb.entries.models import Entry, EntryQuerySet, Revision
from kb.entries.services import create_entry, edit_entry
from kb.entries.values import REASON_LIMIT
from kb.exceptions import (
    EntryNotFoundError,
    PreconditionFailedError,
    RevisionConflictError,
)
from kb.interface.api import AgentReadsCuratorWrites
from kb.upkeep.conflict_resolution import resolve_written

from .filters import EntryFilter
from .serializers import (
    ActionSerializer,
    AlsoAskedSerializer,
    EntryChangesSerializer,
    EntrySerializer,
    NewEntrySerializer,
    RevisionSerializer,
    VerificationSerializer,
)
from .wordings import set_wordings, wordings_of

# A compressing proxy turns the tag into a weak one, which names the same revision.
_TAG = re.compile(r'(?:W/)?"([0-9]{1,9})"')
_IF_MATCH = OpenApiParameter(
    "If-Match",
    {"type": "string", "pattern": rf"^({_TAG.pattern}|\*)$"},
    OpenApiParameter.HEADER,
    description="The ETag of the entry as it was read; 412 if it has changed since.",
)
_ETAG = OpenApiParameter(
    "ETag",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    response=[200, 201],
    description="The revision, for `If-Match`.",
)
_LOCATION = OpenApiParameter(
    "Location",
    OpenApiTypes.URI_REF,
    OpenApiParameter.HEADER,
    response=[201],
    description="The address of the new entry.",
)
_STALE = {
    409: "It is retired, or its revision is not `revision`.",
    412: "Its revision is not the one in `If-Match`.",
}


class _WhySerializer(serializers.Serializer[Any]):
    reason = serializers.CharField(
        max_length=REASON_LIMIT, allow_blank=True, required=False
    )


_CHANGE: dict[str, Any] = {
    "parameters": [_IF_MATCH, _ETAG],
    "responses": {200: EntrySerializer, **_STALE},
}


@extend_schema_view(list=extend_schema(summary="List entries"))
class EntryViewSet(RowViewSet[Entry]):
    """The entries that the caller may read, newest first."""

    permission_classes = [AgentReadsCuratorWrites]
    serializer_class = EntrySerializer
    filterset_class = EntryFilter
    lookup_url_kwarg = "entry_id"
    not_found = EntryNotFoundError

    def get_queryset(self) -> EntryQuerySet:
        return (
            Entry.objects.readable_by(self.request.user)
            .with_revision_number()
            .select_related(
                "knowledge_base", "audience", "document", "section", "owner",
                "product_line", "line_of_business", "verified_by", "upkeep",
            )
            .defer("search_vector")
        )  # fmt: skip

    def get_serializer_context(self) -> dict[str, Any]:
        context = dict(super().get_serializer_context())
        if self.action == "revisions":
            visible = Audience.objects.visible_to(self.request.user)
            context["audiences"] = set(visible.values_list("pk", flat=True))
        return context

    @extend_schema(
        summary="Write an entry",
        parameters=[_ETAG, _LOCATION],
        request=NewEntrySerializer,
        responses={201: EntrySerializer},
    )
    def create(self, request: Request) -> Response:
        """Create an entry; it may serve as evidence as soon as this returns."""
        fields = {"audience": None, **self.validated(NewEntrySerializer)}
        override = fields.pop("override", "")
        with transaction.atomic():
            entry = create_entry(author=caller(request), **fields)
            resolve_written(entry.pk, by=caller(request), override=override)
        self.kwargs["entry_id"] = entry.pk
        response = self._shown(status.HTTP_201_CREATED)
        response["Location"] = reverse("entries-detail", args=[entry.pk])
        return response

    @extend_schema(summary="Read an entry", parameters=[_ETAG])
    def retrieve(self, request: Request, entry_id: int) -> Response:
        """Return an entry; send its ETag as `If-Match` with a change."""
        return self._shown()

    @extend_schema(summary="Change an entry", request=EntryChangesSerializer, **_CHANGE)
    def partial_update(self, request: Request, entry_id: int) -> Response:
        """Change the given fields; a verified entry is then verified by the caller."""
        self.get_object()
        changes = self.validated(EntryChangesSerializer)
        override = changes.pop("override", "")
        expected = self._expected_revision(changes)
        with transaction.atomic():
            self._make(
                edit_entry,
                author=caller(request),
                may_verify=True,
                expected_revision=expected,
                **changes,
            )
            if changes.keys() & {"text", "question"}:
                resolve_written(entry_id, by=caller(request), override=override)
        return self._shown()

    @extend_schema(
        summary="Retire an entry",
        parameters=[_IF_MATCH, _WhySerializer],
        responses={204: None, 412: _STALE[412]},
    )
    def destroy(self, request: Request, entry_id: int) -> Response:
        """Withdraw an entry from all answers; past ones still show what they cite."""
        self.get_object()
        given = validated(_WhySerializer, request.query_params.dict())
        self._make(
            states.retire_entry,
            by=caller(request),
            **given,
            expected_revision=self._revision_in_header(),
        )
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(summary="Verify an entry", request=VerificationSerializer, **_CHANGE)
    @action(detail=True, methods=["post"])
    def verify(self, request: Request, entry_id: int) -> Response:
        """Verify an entry as it is: confidence 1; verifying again renews the date."""
        self.get_object()
        body = self.validated(VerificationSerializer)
        override = body.pop("override", "")
        with transaction.atomic():
            self._act(states.verify_entry, body)
            resolve_written(entry_id, by=caller(request), override=override)
        return self._shown()

    @extend_schema(
        summary="Retire an entry and return it", request=ActionSerializer, **_CHANGE
    )
    @action(detail=True, methods=["post"])
    def retire(self, request: Request, entry_id: int) -> Response:
        """Withdraw an entry from all answers; a retired one is left unchanged."""
        self.get_object()
        self._act(states.retire_entry, self.validated(ActionSerializer))
        return self._shown()

    @extend_schema(
        summary="Restore a retired entry", request=ActionSerializer, **_CHANGE
    )
    @action(detail=True, methods=["post"])
    def restore(self, request: Request, entry_id: int) -> Response:
        """Undo a retirement: the entry returns to its previous state."""
        self.get_object()
        self._act(states.restore_entry, self.validated(ActionSerializer))
        return self._shown()

    @extend_schema(
        summary="List an entry's revisions", responses=RevisionSerializer(many=True)
    )
    @action(detail=True, filter_backends=[], serializer_class=RevisionSerializer)
    def revisions(self, request: Request, entry_id: int) -> Response:
        """List all revisions of an entry, newest first."""
        history = Revision.objects.visible_to(self.request.user)
        rows = history.filter(entry=self.get_object()).select_related(
            "author", "verified_by", "owner", "audience", "document", "section"
        )
        page = self.paginate_queryset(rows)  # type: ignore[arg-type]  # revisions here
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(
        operation_id="entries_revisions_restore",
        summary="Restore an earlier revision",
        request=ActionSerializer,
        **_CHANGE,
    )
    @action(detail=True, methods=["post"], url_path="revisions/<int:number>/restore")
    def restore_revision(
        self, request: Request, entry_id: int, number: int
    ) -> Response:
        """Restore an earlier revision's content as the entry's next revision.

        The audience and the owner stay as they are. A verified entry counts as verified
        by the caller then.
        """
        self.get_object()
        body = self.validated(ActionSerializer)
        self._act(states.restore_revision, body, number=number, may_verify=True)
        return self._shown()

    @extend_schema(
        summary="List the alternative questions of an entry",
        responses=AlsoAskedSerializer,
    )
    @action(detail=True, filter_backends=[], pagination_class=None)
    def also_asked(self, request: Request, entry_id: int) -> Response:
        """Return its alternative questions; for experts: they may be users' words."""
        return self._also_asked(self.get_object())

    @extend_schema(
        operation_id="entries_also_asked_replace",
        summary="Set the alternative questions of an entry",
        request=AlsoAskedSerializer,
        responses=AlsoAskedSerializer,
    )
    @also_asked.mapping.put
    def replace_also_asked(self, request: Request, entry_id: int) -> Response:
        """Replace the alternative questions that the entry answers and is found by."""
        texts = self.validated(AlsoAskedSerializer)["also_asked"]
        entry = self.get_object()
        set_wordings(entry, texts, by=caller(request))
        return self._also_asked(entry)

    def _also_asked(self, entry: Entry) -> Response:
        return Response({"also_asked": wordings_of(entry, by=caller(self.request))})

    def _act(
        self, change: Callable[..., Entry], body: dict[str, Any], **arguments: Any
    ) -> None:
        self._make(
            change,
            by=caller(self.request),
            reason=body["reason"],
            expected_revision=self._expected_revision(body),
            **arguments,
        )

    def _make(self, change: Callable[..., Entry], **arguments: Any) -> None:
        """Make a change; raise a 412 error if `If-Match` is outdated."""
        try:
            change(entry_id=self.kwargs["entry_id"], **arguments)
        except RevisionConflictError as error:
            if self._revision_in_header() is None:
                raise
            raise PreconditionFailedError(str(error)) from error

    def _expected_revision(self, body: dict[str, Any]) -> int | None:
        in_body: int | None = body.pop("revision", None)
        in_header = self._revision_in_header()
        return in_body if in_header is None else in_header

    def _revision_in_header(self) -> int | None:
        """Return the revision in `If-Match`; None without the header, or for `*`."""
        header = self.request.headers.get("If-Match", "*").strip()
        if header == "*":
            return None
        tag = _TAG.fullmatch(header)
        if tag is None:
            raise PreconditionFailedError(
                f"If-Match {header[:60]!r} is not an entry's entity tag; send the ETag "
                "returned on reading the entry, quotes included."
            )
        return int(tag[1])

    def _shown(self, status_code: int = status.HTTP_200_OK) -> Response:
        data = EntrySerializer(self.get_object()).data
        response = Response(data, status=status_code)
        response["ETag"] = f'"{data["revision"]}"'
        return response
