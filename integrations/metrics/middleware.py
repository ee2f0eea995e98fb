"""Requests by route, method and status, with the time to their answer's head."""

import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from prometheus_client import Histogram

REQUEST_SECONDS = Histogram(
    "nescio_http_request_seconds",
    "Time of a request; of a stream, until it begins.",
    ["method", "route", "status"],
    buckets=(0.01, 0.05, 0.1, 0.5, 1, 5, 30, 120),
)
# The client chooses the method and the address: neither may make a series of its own.
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
