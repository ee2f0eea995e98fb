"""OpenTelemetry traces: a request, the stages of its question, the jobs it started.

Off unless NESCIO_TRACES_URL names a collector: then requests make no span, and jobs the
API's empty one.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponseBase
from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind, StatusCode

from accounts.request_ids import current_request_id
from qa.answers.models import Answer
from qa.answers.recording import answer_stored

_tracer = trace.get_tracer("nescio")
_NANOSECONDS = 1_000_000  # in a millisecond
_PART = "."  # "retrieve.sql" is a part of "retrieve"


def start() -> None:
    """Start sending spans if a collector is configured; call it once per process."""
    if not settings.TRACES_URL:
        return
    # Imported here because most systems send no traces.
    from opentelemetry.exporter.otlp.proto.http import trace_exporter  # noqa: PLC0415
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    provider = TracerProvider(resource=Resource.create({"service.name": "nescio"}))
    exporter = trace_exporter.OTLPSpanExporter(endpoint=settings.TRACES_URL)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)


class TraceMiddleware:
    """Makes a span for each request, within the caller's trace (W3C `traceparent`)."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        if not settings.TRACES_URL:
            raise MiddlewareNotUsed
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        around = propagate.extract(
            {name.lower(): value for name, value in request.headers.items()}
        )
        with _tracer.start_as_current_span(
            str(request.method), context=around, kind=SpanKind.SERVER
        ) as span:
            response = self._get_response(request)
            route = request.resolver_match.route if request.resolver_match else ""
            span.update_name(f"{request.method} /{route}")
            span.set_attributes(
                {
                    "http.request.method": str(request.method),
                    "http.route": f"/{route}",
                    "http.response.status_code": response.status_code,
                    "nescio.request_id": current_request_id(),
                }
            )
            if response.status_code >= 500:
                span.set_status(StatusCode.ERROR)
        return response


@receiver(answer_stored)
def add_stages(sender: type[Answer], answer: Answer, **_: object) -> None:
    """Add a span for each stage of a question, from the times in its row.

    The words of question and answer are never part of a trace.
    """
    # A stream's request span has ended by now but is still the parent.
    if not trace.get_current_span().get_span_context().trace_flags.sampled:
        return
    now = time.time_ns()
    whole = {s: ms for s, ms in answer.milliseconds.items() if _PART not in s}
    began = now - int(sum(whole.values()) * _NANOSECONDS)
    question = _tracer.start_span(
        "question",
        start_time=began,
        attributes={
            "nescio.answer": str(answer.pk),
            "nescio.knowledge_base": answer.knowledge_base.slug,
            "nescio.outcome": answer.outcome,
            "nescio.gate": answer.gate,
            "nescio.reason": answer.reason,
        },
    )
    _add_row(question, began, whole, answer.milliseconds)
    question.end(now)


def _add_row(
    parent: trace.Span,
    began: int,
    stages: Mapping[str, float],
    all_stages: Mapping[str, float],
) -> None:
    """Add consecutive spans of stages below `parent`, each with its parts below it."""
    inside = trace.set_span_in_context(parent)
    for stage, milliseconds in stages.items():
        ended = began + int(milliseconds * _NANOSECONDS)
        span = _tracer.start_span(stage, inside, start_time=began)
        parts = {s: ms for s, ms in all_stages.items() if s.startswith(stage + _PART)}
        _add_row(span, began, parts, {})
        span.end(ended)
        began = ended


@contextmanager
def job_span(job_id: str, message: Mapping[str, str]) -> Iterator[None]:
    """Run a job within the trace of the request that started it."""
    with _tracer.start_as_current_span(
        "job",
        context=propagate.extract(message),
        kind=SpanKind.CONSUMER,
        attributes={"nescio.job": job_id},
    ):
        yield
