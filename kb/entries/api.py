"""Changing only what was read: `If-Match` with an entity tag, or `revision` in the body."""

import re
from collections.abc import Callable
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_view,
)
from rest_framework import status
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Role, caller, has_role
from kb.entries.models import Entry, EntryQuerySet
from kb.entries.services import create_entry, edit_entry
from kb.entries.states import restore_entry, retire_entry, verify_entry
from kb.exceptions import (
    EntryNotFoundError,
    PreconditionFailedError,
    RevisionConflictError,
)
from kb.interface.api import AgentReadsCuratorWrites, EntryFilter
from kb.upkeep.conflict_resolution import settle_written

from .serializers import (
    ActionSerializer,
    EntryChangesSerializer,
    EntrySerializer,
    NewEntrySerializer,
    VerificationSerializer,
)

_TAG = re.compile(r'"(\d{1,9})"', re.ASCII)


def revision_in_header(request: Request) -> int | None:
    """Return the revision that `If-Match` asks for; None without one, or for `*`.

    Raises:
        PreconditionFailedError: The header holds no tag of ours, so nothing matches it.
    """
    header = request.headers.get("If-Match", "").strip()
    if header in {"", "*"}:
        return None
    tag = _TAG.fullmatch(header)
    if tag is None:
        raise PreconditionFailedError(
            f"If-Match {header[:60]!r} is no entity tag of an entry; send the ETag that "
            "reading it gave, quotes included."
        )
    return int(tag[1])


def set_entity_tag(response: Response, revision: int) -> Response:
    response["ETag"] = f'"{revision}"'
    return response


IF_MATCH = OpenApiParameter(
    "If-Match",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The ETag of the entry as it was read; 412 if it changed since.",
)

ETAG = OpenApiParameter(
    "ETag",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    response=[200, 201],
    description="The revision, for `If-Match`.",
)
STALE = {
    409: OpenApiResponse(
        description="It is retired, or at another revision than `revision`."
    ),
    412: OpenApiResponse(description="It is at another revision than `If-Match`."),
}


def _readable(request: Request) -> EntryQuerySet:
    """Entries that the caller may read: drafts and retired ones are the curators'."""
    entries = Entry.objects.visible_to(request.user)
    if not has_role(request.user, Role.CURATOR):
        entries = entries.servable()
    return entries


def find_entry(request: Request, entry_id: int) -> Entry:
    """Return an entry that the caller may read, ready to be shown.

    Raises:
        EntryNotFoundError: There is none.
    """
    entry = (
        _readable(request)
        .with_revision_number()
        .select_related(
            "knowledge_base",
            "audience",
            "document",
            "section",
            "owner",
            "product_line",
            "line_of_business",
            "verified_by",
            "upkeep",
        )
        .defer("search_vector")
        .filter(pk=entry_id)
        .first()
    )
    if entry is None:
        raise EntryNotFoundError(f"There is no entry {entry_id} that you may see.")
    return entry


def shown_entry(
    request: Request, entry_id: int, status_code: int = status.HTTP_200_OK
) -> Response:
    """Return the entry as it stands now, with its entity tag."""
    data = EntrySerializer(find_entry(request, entry_id)).data
    return set_entity_tag(Response(data, status=status_code), data["revision"])


def expected_revision(request: Request, body: dict[str, Any]) -> int | None:
    """Return the revision a change was made on; takes it out of `body`."""
    in_body: int | None = body.pop("revision", None)
    in_header = revision_in_header(request)
    return in_body if in_header is None else in_header


def guarded(
    request: Request,
    change: Callable[..., Entry],
    **arguments: Any,  # noqa: ANN401  # those of `change`
) -> Entry:
    """Make a change; a stale `If-Match` is told as HTTP wants it."""
    try:
        return change(**arguments)
    except RevisionConflictError as error:
        if revision_in_header(request) is None:
            raise
        raise PreconditionFailedError(str(error)) from error


@extend_schema_view(
    get=extend_schema(operation_id="entries_list", summary="List entries")
)
class EntryListView(ListAPIView[Entry]):
    """The entries that the caller may read, newest first."""

    permission_classes = [AgentReadsCuratorWrites]
    throttle_scope = "user"
    serializer_class = EntrySerializer
    filterset_class = EntryFilter

    def get_queryset(self) -> QuerySet[Entry]:
        return (
            _readable(self.request)
            .with_revision_number()
            .select_related(
                "knowledge_base",
                "audience",
                "document",
                "section",
                "owner",
                "product_line",
                "line_of_business",
                "verified_by",
                "upkeep",
            )
            .defer("search_vector")
        )

    @extend_schema(
        operation_id="entries_create",
        summary="Write an entry",
        parameters=[ETAG],
        request=NewEntrySerializer,
        responses={201: EntrySerializer},
    )
    def post(self, request: Request) -> Response:
        """Write an entry; it may be evidence from the moment of the answer on."""
        body = NewEntrySerializer(data=request.data, context={"request": request})
        body.is_valid(raise_exception=True)
        fields = {"audience": None, **body.validated_data}
        override = fields.pop("override", "")
        with transaction.atomic():
            entry = create_entry(author=caller(request), **fields)
            settle_written(entry.pk, by=caller(request), override=override)
        return shown_entry(request, entry.pk, status.HTTP_201_CREATED)


class EntryView(GenericAPIView[Entry]):
    """One entry."""

    permission_classes = [AgentReadsCuratorWrites]
    throttle_scope = "user"
    serializer_class = EntrySerializer
    queryset = Entry.objects.none()

    @extend_schema(
        operation_id="entries_read",
        summary="Read an entry",
        parameters=[ETAG],
        responses=EntrySerializer,
    )
    def get(self, request: Request, entry_id: int) -> Response:
        """Return an entry; its ETag is what `If-Match` takes."""
        return shown_entry(request, entry_id)

    @extend_schema(
        operation_id="entries_change",
        summary="Change an entry",
        parameters=[IF_MATCH, ETAG],
        request=EntryChangesSerializer,
        responses={200: EntrySerializer, **STALE},
    )
    def patch(self, request: Request, entry_id: int) -> Response:
        """Change what is given; a verified entry is then verified by the caller."""
        entry = find_entry(request, entry_id)
        body = EntryChangesSerializer(data=request.data, context={"request": request})
        body.is_valid(raise_exception=True)
        changes = dict(body.validated_data)
        override = changes.pop("override", "")
        with transaction.atomic():
            guarded(
                request,
                edit_entry,
                entry_id=entry.pk,
                author=caller(request),
                may_verify=True,
                expected_revision=expected_revision(request, changes),
                **changes,
            )
            if changes.keys() & {"text", "question"}:
                settle_written(entry.pk, by=caller(request), override=override)
        return shown_entry(request, entry_id)

    @extend_schema(
        operation_id="entries_delete",
        summary="Retire an entry",
        parameters=[
            IF_MATCH,
            OpenApiParameter("reason", {"type": "string", "maxLength": 300}),
        ],
        responses={204: None, 412: STALE[412]},
    )
    def delete(self, request: Request, entry_id: int) -> Response:
        """Take an entry out of every answer; past answers still show what they cite."""
        entry = find_entry(request, entry_id)
        guarded(
            request,
            retire_entry,
            entry_id=entry.pk,
            by=caller(request),
            reason=request.query_params.get("reason", ""),
            expected_revision=revision_in_header(request),
        )
        return Response(status=status.HTTP_204_NO_CONTENT)


class _EntryActionView(GenericAPIView[Entry]):
    permission_classes = [AgentReadsCuratorWrites]
    throttle_scope = "user"
    serializer_class = EntrySerializer
    queryset = Entry.objects.none()
    change: Callable[..., Entry]
    body: type[ActionSerializer] = ActionSerializer

    def _act(self, request: Request, entry_id: int) -> Response:
        entry = find_entry(request, entry_id)
        body = self.body(data=request.data)
        body.is_valid(raise_exception=True)
        with transaction.atomic():
            guarded(
                request,
                type(self).change,
                entry_id=entry.pk,
                by=caller(request),
                reason=body.validated_data["reason"],
                expected_revision=expected_revision(request, dict(body.validated_data)),
            )
            if self.body is VerificationSerializer:
                override = body.validated_data.get("override", "")
                settle_written(entry.pk, by=caller(request), override=override)
        return shown_entry(request, entry_id)


class EntryVerifyView(_EntryActionView):
    """Verification of one entry."""

    body = VerificationSerializer

    change = staticmethod(verify_entry)

    @extend_schema(
        operation_id="entries_verify",
        summary="Verify an entry",
        parameters=[IF_MATCH, ETAG],
        request=VerificationSerializer,
        responses={200: EntrySerializer, **STALE},
    )
    def post(self, request: Request, entry_id: int) -> Response:
        """Vouch for an entry as it stands: confidence 1; again renews the date."""
        return self._act(request, entry_id)


class EntryRetireView(_EntryActionView):
    """Retirement of one entry."""

    change = staticmethod(retire_entry)

    @extend_schema(
        operation_id="entries_retire",
        summary="Retire an entry and return it",
        parameters=[IF_MATCH, ETAG],
        request=ActionSerializer,
        responses={200: EntrySerializer, **STALE},
    )
    def post(self, request: Request, entry_id: int) -> Response:
        """Take an entry out of every answer; a retired one stays as it is."""
        return self._act(request, entry_id)


class EntryRestoreView(_EntryActionView):
    """Return of one entry from retirement."""

    change = staticmethod(restore_entry)

    @extend_schema(
        operation_id="entries_restore",
        summary="Restore a retired entry",
        parameters=[IF_MATCH, ETAG],
        request=ActionSerializer,
        responses={200: EntrySerializer, **STALE},
    )
    def post(self, request: Request, entry_id: int) -> Response:
        """Undo a retirement: the entry stands as it did before it."""
        return self._act(request, entry_id)
