"""Metrics of questions, taken from each stored answer, and of requests."""

import time
from collections.abc import Callable

from django.dispatch import receiver
from django.http import HttpRequest, HttpResponseBase
from prometheus_client import Counter, Histogram

from qa.answers.models import Answer
from qa.answers.recording import answer_stored

REQUEST_SECONDS = Histogram(
    "nescio_http_request_seconds",
    "Time of a request; of a stream, until it begins.",
    ["method", "route", "status"],
    buckets=(0.01, 0.05, 0.1, 0.5, 1, 5, 30, 120),
)
# Clients choose method and address, so neither may create a series of its own.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestMetricsMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        began = time.perf_counter()
        response = self._get_response(request)
        match = request.resolver_match
        REQUEST_SECONDS.labels(
            request.method if request.method in _METHODS else "other",
            match.route if match else "none",
            response.status_code,
        ).observe(time.perf_counter() - began)
        return response


_SECONDS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120,
)  # fmt: skip

QUESTIONS = Counter(
    "nescio_questions",
    "Questions answered, refused or failed; the reason is the true one.",
    ["knowledge_base", "channel", "outcome", "gate", "reason"],
)
STAGE_SECONDS = Histogram(
    "nescio_stage_seconds",
    "Time of each stage of a decided question.",
    ["stage"],
    buckets=_SECONDS,
)
MODEL_SECONDS = Histogram(
    "nescio_language_model_seconds",
    "Time of the language model for a question that it was called for.",
    buckets=_SECONDS,
)
MODEL_TOKENS = Counter(
    "nescio_language_model_tokens", "Tokens of the language model.", ["direction"]
)


@receiver(answer_stored)
def count(sender: type[Answer], answer: Answer, **_: object) -> None:
    QUESTIONS.labels(
        answer.knowledge_base.slug,
        answer.channel,
        answer.outcome,
        answer.gate,
        answer.reason,
    ).inc()
    if answer.outcome == Answer.Outcome.FAILED:
        return
    for stage, milliseconds in answer.milliseconds.items():
        STAGE_SECONDS.labels(stage).observe(milliseconds / 1000)
    if written := answer.generation:
        MODEL_SECONDS.observe(written["milliseconds"] / 1000)
        MODEL_TOKENS.labels("read").inc(written["prompt_tokens"])
        MODEL_TOKENS.labels("written").inc(written["answer_tokens"])
