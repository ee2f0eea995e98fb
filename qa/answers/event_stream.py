"""Deciding a question as server-sent events of JSON.

A thread decides, and the response only forwards its events. A caller who disconnects
ends the stream but not the work, so a stored question is always decided or failed.
While a language model works, a comment keeps the connection alive.
"""

import contextvars
import logging
import queue
import re
import threading
import time
from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db import connections
from django.http import StreamingHttpResponse
from rest_framework.renderers import JSONRenderer

from accounts.exceptions import NescioError, as_unavailable, error_envelope
from qa.answers import asking
from qa.answers import sources as loading
from qa.answers.models import Answer, fetch_evidence
from qa.answers.recording import record_failure
from qa.answers.serializers import as_json
from qa.pipeline.gates import Decision
from qa.pipeline.values import Outcome, Retrieval, StageValue, stage_name

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 10.0
HEARTBEAT = ": still working\n\n"  # a comment line, which clients ignore

Event = tuple[str, dict[str, Any]]

_AFTER_SPACE = re.compile(r"(?<=\s)(?=\S)")


def event_response(texts: Iterator[str]) -> StreamingHttpResponse:
    """Return a response of server-sent events that is neither cached nor buffered."""
    return StreamingHttpResponse(
        texts,
        content_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def stream(
    answer: Answer, *, heartbeat_seconds: float = HEARTBEAT_SECONDS
) -> Iterator[str]:
    """Decide a stored, pending question and yield its events as text, ready to send."""
    for event in decided_in_thread(answer, heartbeat_seconds=heartbeat_seconds):
        yield HEARTBEAT if event is None else _as_text(*event)


def decided_in_thread(
    answer: Answer, *, heartbeat_seconds: float = HEARTBEAT_SECONDS
) -> Iterator[Event | None]:
    """Decide a stored question in a thread; yield events, and None as a heartbeat."""
    loading.release_connection()  # the deciding thread has its own
    inbox: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
    context = contextvars.copy_context()  # carries the request's id into the log
    threading.Thread(
        target=context.run, args=(_work, answer, inbox), name=f"ask {answer.pk}"
    ).start()
    while True:
        try:
            event = inbox.get(timeout=heartbeat_seconds)
        except queue.Empty:
            yield None
            continue
        if event is None:
            return
        yield event


def events(answer: Answer) -> Iterator[Event]:
    """Decide a stored question and yield (event, data): stages, decision, text, end.

    No event before the decision contains text written by a model.
    """
    began = time.perf_counter()
    yield "stage", {"stage": "kept", "id": str(answer.pk), "milliseconds": 0.0}
    try:
        for value in asking.decide(answer):
            if not isinstance(value, Outcome):
                elapsed = round((time.perf_counter() - began) * 1000, 3)
                yield "stage", {**_stage_data(value), "milliseconds": elapsed}
    except NescioError as error:
        yield "error", error_envelope(error.code, str(error), {"id": str(answer.pk)})
        return
    except Exception as error:
        logger.exception("Question %s could not be decided", answer.pk)
        passing = as_unavailable(error)
        code = passing.code if passing else "internal_error"
        message = str(
            passing or "Something went wrong; it is logged, and the question is saved."
        )
        yield "error", error_envelope(code, message, {"id": str(answer.pk)})
        # Last, as this fails as well if the error came from the database.
        record_failure(answer, error)
        return
    fetch_evidence(answer, answer.asker or AnonymousUser())
    whole = as_json(answer)
    decided = ("id", "outcome", "answered", "unsourced", "gate", "reason")
    yield "decision", {name: whole[name] for name in decided}
    for piece in _AFTER_SPACE.split(whole["text"]):
        yield "message", {"delta": piece}
    yield "end", whole


def _work(answer: Answer, inbox: "queue.SimpleQueue[Event | None]") -> None:
    try:
        for event in events(answer):
            inbox.put(event)
    finally:
        inbox.put(None)
        connections.close_all()


def _stage_data(value: StageValue) -> dict[str, Any]:
    """Return the data to show for a stage; never a reason that the policy hides."""
    data: dict[str, Any] = {"stage": stage_name(value)}
    if isinstance(value, Retrieval):
        distances = [piece.distance for piece in value.evidence]
        data |= {"evidence": len(distances), "nearest": min(distances, default=None)}
    elif isinstance(value, Decision):
        data["passed"] = not value.refused
    return data


def _as_text(name: str, data: dict[str, Any]) -> str:
    # JSON escapes line ends, so that one event is always one line of data.
    return f"event: {name}\ndata: {JSONRenderer().render(data).decode()}\n\n"
