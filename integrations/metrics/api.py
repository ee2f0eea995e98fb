"""GET /metrics in Prometheus' text format, for who has the metrics' token or is an admin."""

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.utils.crypto import constant_time_compare
from drf_spectacular.utils import extend_schema
from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    REGISTRY,
    CollectorRegistry,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector
from rest_framework.authentication import get_authorization_header
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts.authentication import ApiTokenAuthentication
from accounts.models import ApiToken
from accounts.rest import KnownQueryView
from accounts.roles import IsAdmin
from integrations.metrics.system import SystemCollector

_SYSTEM = CollectorRegistry()
_SYSTEM.register(SystemCollector())


class MetricsAuthentication(ApiTokenAuthentication):
    """Reads no API token where the metrics' own one is given."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        return None if _has_token(request) else super().authenticate(request)


class MayScrape(IsAdmin):
    """Lets in who has NESCIO_METRICS_TOKEN, which opens nothing else, and admins."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        return _has_token(request) or super().has_permission(request, view)


class MetricsView(KnownQueryView):
    authentication_classes = [MetricsAuthentication]
    permission_classes: list[type[BasePermission]] = [MayScrape]
    throttle_classes = []

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        """Return every metric; those of all web processes where they share a directory."""
        registry = REGISTRY
        if settings.METRICS_DIR:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # untyped in the library
        text = generate_latest(registry) + generate_latest(_SYSTEM)
        return HttpResponse(text, content_type=CONTENT_TYPE_PLAIN_0_0_4)


def _has_token(request: Request) -> bool:
    scheme, _, token = get_authorization_header(request).partition(b" ")
    wanted: str = settings.METRICS_TOKEN
    return (
        bool(wanted)
        and scheme.lower() == b"bearer"
        and constant_time_compare(token.strip(), wanted)
    )
