"""A job's progress as server-sent events.

The web server gives each open connection a thread, so a stream ends after about 25 s and
the browser comes back by itself, naming the last event that it saw. Between two looks no
database connection is held.
"""

import json
import time
from collections.abc import Iterator
from uuid import UUID

from django.db import connection
from rest_framework.renderers import BaseRenderer, JSONRenderer

from jobs.api.serializers import JobSerializer
from jobs.models import Job

STREAM_SECONDS = 25.0
LOOK_SECONDS = 0.5
SILENCE_SECONDS = 10.0
RECONNECT_MILLISECONDS = 1_000


EVENT_SCHEMA = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "event": {"type": "string"},
        "data": {"type": "string", "description": "JSON."},
        "id": {"type": "string"},
    },
}
"""One event of a stream, in the way that tools for OpenAPI 3.0 read an event stream."""


class EventStreamRenderer(BaseRenderer):
    """Lets `Accept: text/event-stream` through to a view that streams by itself."""

    media_type = "text/event-stream"
    format = "event-stream"
    charset = None

    def render(self, data: object, *_: object, **__: object) -> bytes:
        """Return `data` as JSON: only errors before the stream come here."""
        return bytes(JSONRenderer().render(data))


def event_id(job: Job) -> str:
    """Return what changes exactly when a reader has something new to see."""
    flags = "c" if job.cancel_requested else ""
    return f"{job.attempts}-{job.done}-{job.total}-{job.state}{flags}"


def stream(
    job_id: UUID,
    *,
    last_event_id: str = "",
    seconds: float = STREAM_SECONDS,
    look_seconds: float = LOOK_SECONDS,
) -> Iterator[str]:
    """Yield `progress` events, each a whole job, then `end` once it has finished.

    Args:
        last_event_id: The id of the event that the reader saw last; it is not repeated.
        seconds: How long at most; then the reader is to reconnect.
        look_seconds: Time between two looks at the row.
    """
    began = spoke = time.monotonic()
    yield f"retry: {RECONNECT_MILLISECONDS}\n\n"
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
