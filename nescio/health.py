"""Health checks: /healthz (can answer questions) and /healthz/live (is running).

Failures of broker and queue only mean "degraded": questions are answered without them,
so a load balancer must not remove the web server. Versions are shown only to the role
admin. Existing packages check only the database, and check Celery by a broadcast, which
the file-based broker does not support.
"""

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlsplit

from celery import current_app
from django.conf import settings
from django.db import DatabaseError
from django.db.models import Min, Q
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from kombu.exceptions import OperationalError
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.request import Request

from accounts import replica
from accounts.delegation import DelegatingTokenAuthentication, UnknownUserError
from accounts.prepared import execute
from accounts.replaced_migrations import count_missing
from accounts.roles import Role, has_role
from jobs.models import Job
from nescio import disk, fitness, warm_up

_NAMES_VERSION = frozenset({"database", "pgvector"})
_HIDDEN = "shown to the role admin"
_BROKER_SECONDS = 2
_SERVER_SECONDS = 2
# The sweeper repeats notifications within a minute, so jobs that wait this long have no
# worker.
_MAX_QUEUE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check; if a vital one fails, questions can't be answered."""

    name: str
    ok: bool
    detail: str
    is_vital: bool = True


def look(*, with_models: bool = True) -> tuple[Finding, ...]:
    models = _models() if with_models else ()
    return (_disk(), *_database(), *models, _broker())


@never_cache
@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    findings = look()
    is_ready = all(finding.ok for finding in findings if finding.is_vital)
    status = "ok" if all(finding.ok for finding in findings) else "degraded"
    hidden = frozenset() if _is_operator(request) else _NAMES_VERSION
    return JsonResponse(
        {
            "status": status if is_ready else "unavailable",
            "checks": {
                finding.name: {
                    "ok": finding.ok,
                    "detail": _HIDDEN if finding.name in hidden else finding.detail,
                }
                for finding in findings
            },
        },
        status=200 if is_ready else 503,
    )


@never_cache
@require_safe
def live(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})


def _is_operator(request: HttpRequest) -> bool:
    try:
        found = DelegatingTokenAuthentication().authenticate(Request(request))
        return has_role(found[0] if found else request.user, Role.ADMIN)
    except (AuthenticationFailed, PermissionDenied, UnknownUserError, DatabaseError):
        return False


def _disk() -> Finding:
    problem = disk.problem()
    return Finding("disk", problem is None, problem or "has room")


def _database() -> Iterator[Finding]:
    looks: tuple[tuple[str, Callable[[], Finding]], ...] = (
        ("database", _reachable),
        ("pgvector", _pgvector),
        ("iterative_scan", _iterative_scan),
        ("migrations", _migrations),
        ("queue", _queue),
        *((("replica", _replica),) if settings.DATABASE_REPLICA_URL else ()),
    )
    down = None
    for name, check in looks:
        if down is None:
            try:
                yield check()
                continue
            except DatabaseError as error:
                # The remaining checks would each wait for the same database.
                down = type(error).__name__
        yield Finding(name, ok=False, detail=f"not known: {down}")


def _reachable() -> Finding:
    version = execute("SHOW server_version")[0][0]
    return Finding("database", True, f"PostgreSQL {version}")


def _pgvector() -> Finding:
    problem = fitness.pgvector_problem()
    return Finding(
        "pgvector", problem is None, problem or str(fitness.pgvector_version()[0])
    )


def _iterative_scan() -> Finding:
    problem = fitness.iterative_scan_problem()
    return Finding("iterative_scan", problem is None, problem or "relaxed_order")


def _migrations() -> Finding:
    missing = _missing_migrations()
    return Finding(
        "migrations",
        missing == 0,
        f"{missing} to apply: run manage.py migrate" if missing else "applied",
    )


def _missing_migrations() -> int:
    if _all_applied.cache_info().currsize:
        return 0
    missing = count_missing()
    if not missing:
        _all_applied()
    return missing


@cache
def _all_applied() -> bool:
    """Remember that no migration is missing: reading them all takes 50 ms."""
    return True


def _queue() -> Finding:
    now = timezone.now()
    due = Job.objects.filter(
        Q(not_before__isnull=True) | Q(not_before__lte=now), state=Job.State.QUEUED
    )
    oldest = due.aggregate(oldest=Min("created_at"))["oldest"]
    seconds = (now - oldest).total_seconds() if oldest else 0.0
    return Finding(
        "queue",
        seconds <= _MAX_QUEUE_SECONDS,
        f"oldest waiting job: {seconds:.0f} s",
        is_vital=False,
    )


def _replica() -> Finding:
    problem = replica.problem()
    detail = f"{problem}; the primary is read instead" if problem else "up to date"
    return Finding("replica", problem is None, detail, is_vital=False)


def _models() -> Iterator[Finding]:
    if settings.MODEL_SERVICE_URL:
        yield _takes_connections(
            "model_service", settings.MODEL_SERVICE_URL, is_vital=True
        )
    for name, state in warm_up.states().items():
        if name == "language_model" and settings.LANGUAGE_SERVER_URL:
            yield language_server()
            continue
        yield Finding(
            name,
            state in {warm_up.State.LOADED, warm_up.State.ON_DEMAND},
            state.value,
            # Refusals and word-for-word answers need no language model.
            is_vital=name == "embedder",
        )


def language_server() -> Finding:
    """Check whether the server accepts connections; a real request may cost money."""
    url = settings.LANGUAGE_SERVER_URL
    return _takes_connections("language_model", url, is_vital=False)


def _takes_connections(name: str, url: str, *, is_vital: bool) -> Finding:
    try:
        address = urlsplit(url)
        port = address.port or (443 if address.scheme == "https" else 80)
        with socket.create_connection(
            (address.hostname or "", port), timeout=_SERVER_SECONDS
        ):
            detail = "its server takes connections"
    except (OSError, ValueError) as error:
        detail = f"its server cannot be reached: {type(error).__name__}"
        return Finding(name, False, detail, is_vital)
    return Finding(name, True, detail, is_vital)


def _broker() -> Finding:
    with current_app.connection_for_write() as broker:
        try:
            broker.ensure_connection(max_retries=1, timeout=_BROKER_SECONDS)
        except OperationalError as error:  # kombu wraps each broker's own error
            return Finding("broker", False, type(error).__name__, is_vital=False)
        detail = "files" if settings.BROKER_IS_EMBEDDED else str(broker.transport_cls)
        return Finding("broker", True, detail, is_vital=False)
