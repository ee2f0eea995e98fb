from collections.abc import Callable
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import QuerySet
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.generics import GenericAPIView, ListAPIView
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import IsAgent
from jobs.api.events import EVENT_SCHEMA, EventStreamRenderer, event_id, stream
from jobs.api.serializers import JobSerializer
from jobs.exceptions import JobNotFoundError
from jobs.models import Job
from jobs.services import request_cancel, retry


class _JobsOfUser(GenericAPIView[Job]):
    serializer_class = JobSerializer
    permission_classes = [IsAgent]
    throttle_scope = "user"

    def get_queryset(self) -> QuerySet[Job]:
        return Job.objects.visible_to(self.request.user).select_related("owner")

    def find(self, job_id: UUID) -> Job:
        job = self.get_queryset().filter(pk=job_id).first()
        if job is None:
            msg = f"There is no job {job_id} that you may see."
            raise JobNotFoundError(msg)
        return job


class JobListView(_JobsOfUser, ListAPIView[Job]):
    """Jobs, newest first."""

    filterset_fields = ["state", "kind"]

    @extend_schema(operation_id="jobs_list")
    def get(self, request: Request) -> Response:
        """List one's own jobs, newest first; an admin sees everybody's."""
        return self.list(request)


class JobView(_JobsOfUser):
    """One job."""

    @extend_schema(operation_id="jobs_read", responses=JobSerializer)
    def get(self, request: Request, job_id: UUID) -> Response:
        """Read a job with its progress, result or error."""
        return Response(JobSerializer(self.find(job_id)).data)


class JobCancelView(_JobsOfUser):
    """Stops a job."""

    @extend_schema(
        operation_id="jobs_cancel", request=None, responses={200: JobSerializer}
    )
    def post(self, request: Request, job_id: UUID) -> Response:
        """Stop a job: at once where no worker holds it, else before its next step.

        What is done stays done; the job can be retried. Asking twice is asking once.
        """
        return _changed(request_cancel, job_id, request.user)


class JobRetryView(_JobsOfUser):
    """Starts a job again."""

    @extend_schema(
        operation_id="jobs_retry", request=None, responses={200: JobSerializer}
    )
    def post(self, request: Request, job_id: UUID) -> Response:
        """Let a failed or cancelled job go on from where it was."""
        return _changed(retry, job_id, request.user)


class JobEventsView(_JobsOfUser):
    """A job's progress as it happens."""

    renderer_classes = [EventStreamRenderer, JSONRenderer]

    @extend_schema(
        operation_id="jobs_events",
        parameters=[
            OpenApiParameter(
                "Last-Event-ID",
                OpenApiTypes.STR,
                OpenApiParameter.HEADER,
                description="The last event that was seen; a browser sends it by itself.",
            )
        ],
        responses={
            (200, "text/event-stream"): OpenApiResponse(
                EVENT_SCHEMA,
                "Events `progress` and, once, `end`; the data of each is a job.",
            ),
            204: OpenApiResponse(
                description="Finished, and its end was seen: go away."
            ),
        },
    )
    def get(self, request: Request, job_id: UUID) -> HttpResponseBase:
        """Follow a job by server-sent events, for about 25 s a connection.

        An `EventSource` reconnects by itself; after `end` it is told to stay away.
        """
        job = self.find(job_id)
        seen = request.headers.get("Last-Event-ID", "")
        if job.is_finished and seen == event_id(job):
            return HttpResponse(status=204)
        return StreamingHttpResponse(
            stream(job.pk, last_event_id=seen),
            content_type="text/event-stream; charset=utf-8",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )


def _changed(
    change: Callable[..., Job], job_id: UUID, user: AbstractBaseUser | AnonymousUser
) -> Response:
    return Response(JobSerializer(change(job_id, by=user)).data)
