"""Traces, as a collector gets them by OTLP."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import TracerProvider

from accounts.services import create_token
from integrations.traces import spans
from qa.models import Answer
from tests.factories import make_entry, make_user

FEE = "What does a replacement card cost?"


@pytest.fixture(scope="module")
def collector() -> Iterator[tuple[str, list[Span]]]:
    got: list[Span] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            sent = ExportTraceServiceRequest.FromString(body)
            got.extend(
                span
                for resource in sent.resource_spans
                for scope in resource.scope_spans
                for span in scope.spans
            )
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  # its name
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1/traces", got
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def provider(collector) -> Iterator[TracerProvider]:
    """The process's provider, which can be set once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("django.conf.settings.TRACES_URL", collector[0])
        patch.setenv("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "none")
        spans.start()
    made = trace.get_tracer_provider()
    assert isinstance(made, TracerProvider)
    yield made
    made.shutdown()


@pytest.mark.slow
def test_a_request_is_a_trace_with_its_questions_stages(
    provider, collector, client, db, settings
):
    settings.TRACES_URL = collector[0]  # read when the client's handler is made
    make_entry("It costs 12 euros.", question=FEE)
    secret = create_token(user=make_user()).secret
    theirs = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    client.post(
        "/api/v1/ask",
        {"question": FEE},
        "application/json",
        headers={"authorization": f"Bearer {secret}", "traceparent": theirs},
    )
    with spans.job_span("7", {"traceparent": theirs}):
        pass
    provider.force_flush()

    _, got = collector
    by_name = {span.name: span for span in got}
    request = by_name["POST /api/v1/ask"]
    assert request.trace_id.hex() == theirs.split("-")[1]
    assert request.parent_span_id.hex() == theirs.split("-")[2]
    question = by_name["question"]
    assert question.parent_span_id == request.span_id
    stages = {span.name for span in got if span.parent_span_id == question.span_id}
    measured = set(Answer.objects.get().milliseconds)
    assert stages == {name for name in measured if "." not in name}
    retrieve, sql = by_name["retrieve"], by_name["retrieve.sql"]
    assert sql.parent_span_id == retrieve.span_id
    assert retrieve.start_time_unix_nano <= sql.start_time_unix_nano
    said = {each.key: each.value.string_value for each in question.attributes}
    assert said["nescio.gate"] == "verbatim"
    assert by_name["job"].trace_id == request.trace_id
    assert "replacement" not in str(got)
    assert "12 euros" not in str(got)
