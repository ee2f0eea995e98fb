"""Jobs over REST, and their progress as server-sent events."""

import json
import threading
import time
from collections.abc import Generator, Iterator
from uuid import UUID

import django_filters
from django.conf import settings
from django.db import connection
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_view,
)
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import RetrieveModelMixin
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.rest import RowViewSet, ShownSerializer, StrictFilterSet, username_field
from accounts.roles import IsAgent
from jobs import services
from jobs.exceptions import JobNotFoundError
from jobs.models import Job, JobQuerySet


class JobSerializer(ShownSerializer[Job]):
    """A job and its progress."""

    owner = username_field(
        "owner",
        read_only=True,
        help_text="Who requested it; null for the system itself.",
    )
    parameters = serializers.DictField(read_only=True)
    result = serializers.DictField(
        read_only=True, help_text="The outcome, once it has succeeded."
    )
    total = serializers.IntegerField(
        read_only=True, allow_null=True, help_text="Null while unknown."
    )
    is_finished = serializers.BooleanField(
        read_only=True, help_text="Whether it has succeeded, failed or been cancelled."
    )

    class Meta:
        model = Job
        fields = [
            "id", "kind", "parameters", "state", "is_finished", "done", "total", "result",
            "error", "attempts", "cancel_requested", "owner",
            "created_at", "started_at", "finished_at",
        ]  # fmt: skip


# Progress as server-sent events


STREAM_SECONDS = 25.0
LOOK_SECONDS = 0.5
SILENCE_SECONDS = 10.0
RECONNECT_MILLISECONDS = 1_000
# Each follower occupies a thread of the web server, which questions need too.
_LOOK_AGAIN_MILLISECONDS = 10_000
_followed = threading.BoundedSemaphore(max(1, settings.WEB_THREADS // 4))


def event_schema(**said: str) -> dict[str, object]:
    """Describe an event of a stream in the form that OpenAPI 3.0 tools read.

    Args:
        said: Maps the name of each event to a description of the JSON in its data.
    """
    listed = "".join(f"\n- `{name}`: {what}" for name, what in said.items())
    return {
        "type": "object",
        "required": ["event", "data"],
        "properties": {
            "event": {"type": "string", "enum": [*said]},
            "data": {"type": "string", "description": f"JSON, by event:\n{listed}"},
            "id": {"type": "string"},
        },
    }


class EventStreamRenderer(BaseRenderer):
    """A renderer that lets `Accept: text/event-stream` through to a streaming view."""

    media_type = "text/event-stream"
    format = "event-stream"
    charset = None

    def render(self, data: object, *_: object, **__: object) -> bytes:
        return bytes(JSONRenderer().render(data))


def event_id(job: Job) -> str:
    flags = "c" if job.cancel_requested else ""
    return f"{job.attempts}-{job.done}-{job.total}-{job.state}{flags}"


def stream(
    job_id: UUID,
    *,
    last_event_id: str = "",
    seconds: float = STREAM_SECONDS,
    look_seconds: float = LOOK_SECONDS,
) -> Generator[str]:
    """Yield `progress` events with the job's data, then `end` once it has finished.

    The event with `last_event_id` is not repeated. The stream closes after `seconds`,
    and the client is expected to reconnect. While a quarter of the web server's threads
    already follow jobs, each further client gets one look at the job and reconnects
    later.
    """
    is_followed = _followed.acquire(blocking=False)
    try:
        wait = RECONNECT_MILLISECONDS if is_followed else _LOOK_AGAIN_MILLISECONDS
        yield f"retry: {wait}\n\n"
        yield from _looks(
            job_id, last_event_id, seconds if is_followed else 0.0, look_seconds
        )
    finally:
        if is_followed:
            _followed.release()


def _looks(
    job_id: UUID, last_event_id: str, seconds: float, look_seconds: float
) -> Iterator[str]:
    began = spoke = time.monotonic()
    while True:
        job = _read(job_id)
        if job is None:
            yield _event("end", "deleted", None)
            return
        seen = event_id(job)
        if job.is_finished:
            yield _event("end", seen, job)
            return
        now = time.monotonic()
        if seen != last_event_id:
            last_event_id, spoke = seen, now
            yield _event("progress", seen, job)
        elif now - spoke >= SILENCE_SECONDS:
            spoke = now
            yield ": nothing new\n\n"
        if now - began + look_seconds > seconds:
            return
        time.sleep(look_seconds)


def _read(job_id: UUID) -> Job | None:
    try:
        return Job.objects.select_related("owner").filter(pk=job_id).first()
    finally:
        if not connection.in_atomic_block:
            connection.close()  # back to the pool


def _event(name: str, seen: str, job: Job | None) -> str:
    data = None if job is None else JobSerializer(job).data
    text = JSONRenderer().render(data).decode() if data else json.dumps(None)
    return f"event: {name}\nid: {seen}\ndata: {text}\n\n"


class JobFilter(StrictFilterSet):
    state = django_filters.ChoiceFilter(choices=Job.State.choices)
    kind = django_filters.ChoiceFilter(
        choices=[(each, each) for each in settings.JOB_KINDS]
    )


@extend_schema_view(
    retrieve=extend_schema(description="Read a job with its progress, result or error.")
)
class JobViewSet(RetrieveModelMixin, RowViewSet[Job]):
    """List the caller's own jobs, newest first; an admin sees everyone's."""

    serializer_class = JobSerializer
    permission_classes = [IsAgent]
    filterset_class = JobFilter
    lookup_url_kwarg = "job_id"
    lookup_value_converter = "uuid"
    not_found = JobNotFoundError

    def get_queryset(self) -> JobQuerySet:
        return Job.objects.visible_to(self.request.user).select_related("owner")

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, job_id: UUID) -> Response:
        """Stop a job: at once if no worker holds it, otherwise before its next step.

        Finished steps stay done, and the job can be retried. Cancelling twice is
        harmless.
        """
        job = services.request_cancel(job_id, by=request.user)
        return Response(JobSerializer(job).data)

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, job_id: UUID) -> Response:
        """Resume a failed or cancelled job from where it stopped."""
        return Response(JobSerializer(services.retry(job_id, by=request.user)).data)

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "Last-Event-ID",
                OpenApiTypes.STR,
                OpenApiParameter.HEADER,
                description="Id of the last event received; sent by browsers.",
            )
        ],
        responses={
            (200, "text/event-stream"): OpenApiResponse(
                event_schema(
                    progress="the `Job`.",
                    end="the `Job`, once, as the last event; null if it was deleted.",
                ),
                "Events `progress` and, once, `end`; the data of each is a job.",
            ),
            204: "Finished, and the `end` event was received: do not reconnect.",
        },
    )
    @action(detail=True, renderer_classes=[EventStreamRenderer, JSONRenderer])
    def events(self, request: Request, job_id: UUID) -> HttpResponseBase:
        """Follow a job by server-sent events, for about 25 s a connection.

        An `EventSource` reconnects by itself; after `end` it gets 204 and stops.
        """
        job = self.get_object()
        seen = request.headers.get("Last-Event-ID", "")
        if job.is_finished and seen == event_id(job):
            return HttpResponse(status=204)
        return StreamingHttpResponse(
            stream(job.pk, last_event_id=seen),
            content_type="text/event-stream; charset=utf-8",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
