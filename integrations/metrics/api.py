"""GET /metrics in Prometheus' text format, for the metrics token or an admin.

What no process counts is read from the database on request, so that every process
returns the same.
"""

import os
from collections.abc import Iterator
from functools import partial

from django.conf import settings
from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError
from django.db.models import Count, Min
from django.http import HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from drf_spectacular.utils import extend_schema
from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    REGISTRY,
    CollectorRegistry,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from rest_framework.authentication import get_authorization_header
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts.delegation import DelegatingTokenAuthentication
from accounts.models import ApiToken
from accounts.rest import KnownQueryView
from accounts.roles import IsAdmin
from jobs.models import Job
from jobs.services import queue_of
from qa.answers import sources
from qa.answers.models import Answer
from qa.calibration.models import DriftReading


class SystemCollector(Collector):
    """Jobs, open questions and drift, read from the database by five small queries."""

    def describe(self) -> Iterator[GaugeMetricFamily]:
        return iter(())  # registering it must read nothing

    def collect(self) -> Iterator[GaugeMetricFamily]:
        up = GaugeMetricFamily("nescio_database_up", "1 where the database answers.")
        try:
            found = [*_jobs(), *_answers(), _drift()]
        except (InterfaceError, OperationalError):
            found = []
        up.add_metric([], float(bool(found)))
        yield up
        yield GaugeMetricFamily(
            "nescio_language_model_places_taken",
            "Questions in the language model of this process, or waiting for it.",
            value=sources.before_the_model.taken,
        )
        yield from found


def _jobs() -> Iterator[GaugeMetricFamily]:
    of_state = partial(GaugeMetricFamily, labels=["queue", "kind", "state"])
    count = of_state("nescio_jobs", "Unfinished jobs.")
    age = of_state("nescio_job_oldest_seconds", "Age of the oldest unfinished job.")
    ended_at = of_state(
        "nescio_job_last_finished_timestamp_seconds",
        "When a job of this kind last ended in this state, in seconds since 1970.",
    )
    took = of_state("nescio_job_last_seconds", "Time of that job from its first start.")
    now = timezone.now()
    rows = Job.objects.unfinished().order_by().values_list("kind", "state")
    for kind, state, jobs, oldest in rows.annotate(Count("pk"), Min("created_at")):
        labels = [queue_of(kind), kind, state]
        count.add_metric(labels, jobs)
        age.add_metric(labels, (now - oldest).total_seconds())
    for kind, state, ended, time in Job.objects.last_of_each_kind():
        labels = [queue_of(kind), kind, state]
        ended_at.add_metric(labels, ended.timestamp())
        took.add_metric(labels, time.total_seconds())
    yield from (count, age, ended_at, took)
    failed = GaugeMetricFamily(
        "nescio_jobs_failed",
        "Jobs that failed and are kept (NESCIO_JOB_KEEP_DAYS).",
        labels=["kind"],
    )
    lost = Job.objects.filter(state=Job.State.FAILED).order_by().values_list("kind")
    for kind, jobs in lost.annotate(Count("pk")):
        failed.add_metric([kind], jobs)
    yield failed


def _answers() -> Iterator[GaugeMetricFamily]:
    pending = Answer.objects.filter(outcome=Answer.Outcome.PENDING)
    begun = pending.aggregate(count=Count("pk"), oldest=Min("created_at"))
    yield GaugeMetricFamily(
        "nescio_questions_pending", "Questions being decided.", value=begun["count"]
    )
    oldest = begun["oldest"]
    yield GaugeMetricFamily(
        "nescio_question_oldest_seconds",
        "Age of the oldest question that is being decided; 0 without one.",
        value=(timezone.now() - oldest).total_seconds() if oldest else 0.0,
    )


def _drift() -> GaugeMetricFamily:
    found = GaugeMetricFamily(
        "nescio_drift",
        "1 where live questions drifted from those of the active policy's certificate.",
        labels=["knowledge_base", "policy"],
    )
    latest = (
        DriftReading.objects.filter(certificate__policy__is_active=True)
        .order_by("certificate_id", "-checked_at")
        .distinct("certificate_id")
        .select_related("certificate__policy__knowledge_base")
    )
    for reading in latest:
        policy = reading.certificate.policy
        found.add_metric(
            [policy.knowledge_base.slug, str(policy)], float(reading.has_drifted)
        )
    return found


_SYSTEM = CollectorRegistry()
_SYSTEM.register(SystemCollector())


class MetricsAuthentication(DelegatingTokenAuthentication):
    """Leaves API tokens unread if the request has the metrics token."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        return None if _has_token(request) else super().authenticate(request)


class MayScrape(IsAdmin):
    """Admits NESCIO_METRICS_TOKEN, which opens nothing else, and admins."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        return _has_token(request) or super().has_permission(request, view)


class MetricsView(KnownQueryView):
    authentication_classes = [MetricsAuthentication]
    permission_classes: list[type[BasePermission]] = [MayScrape]
    throttle_classes = []

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        """Return all metrics, those of all web processes if they share a directory."""
        registry = REGISTRY
        # Set if this process was forked to share its work (`nescio.forking`).
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
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
