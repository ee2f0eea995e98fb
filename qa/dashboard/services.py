"""All that the dashboard shows: traffic, quality, drift, and what waits for people."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Max, QuerySet

from qa.calibration.models import DriftReading
from qa.dashboard.models import CountedDay
from qa.dashboard.traffic import Traffic
from qa.gaps.escalation_models import Escalation
from qa.gaps.models import Gap

from .quality import Quality, read_quality
from .traffic import Scope, moments, read_traffic

_TOP_GAPS = 5
# Looked at nightly: a quarter is as much as a drawing can show.
_MOST_READINGS = 90


@dataclass(frozen=True, slots=True)
class SignalDrift:
    """How far one signal of a policy has moved from where it was when certified.

    Attributes:
        distance: Kolmogorov-Smirnov distance at the last look, in [0, 1]; None where too
            few answers had a value.
        psi: Population stability index at the last look.
        history: Distances by day, the earliest first.
    """

    policy: str
    signal: str
    live: int
    distance: float | None
    psi: float
    has_drifted: bool
    history: tuple[tuple[date, float], ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits for people now, whatever the period.

    Attributes:
        top_gaps: Those with the greatest impact, which the reader may see.
    """

    gaps: int
    top_gaps: tuple[Gap, ...]
    escalations: int


@dataclass(frozen=True, slots=True)
class Dashboard:
    """What one reader is shown of one scope.

    Attributes:
        counted_at: When answers were counted last; None before the first time.
        drift: By policy and signal; None for who may not see it.
    """

    scope: Scope
    counted_at: datetime | None
    traffic: Traffic
    quality: Quality
    drift: tuple[SignalDrift, ...] | None
    waiting: Waiting


def read_dashboard(scope: Scope, *, reader: User) -> Dashboard:
    """Read everything (ten queries); gaps and escalations are of all tags."""
    return Dashboard(
        scope,
        CountedDay.objects.aggregate(at=Max("counted_at"))["at"],
        read_traffic(scope),
        read_quality(scope),
        _drift(scope) if reader.has_perm("qa.view_driftreading") else None,
        _waiting(scope, reader),
    )


def _drift(scope: Scope) -> tuple[SignalDrift, ...]:
    """Read the looks at the certificates of what decides now."""
    begin, end = moments(scope.period)
    rows = DriftReading.objects.filter(
        certificate__policy__is_active=True, checked_at__gte=begin, checked_at__lt=end
    ).select_related("certificate__policy")
    if scope.knowledge_base:
        rows = rows.filter(certificate__policy__knowledge_base=scope.knowledge_base)
    readings = list(rows.order_by("-checked_at", "-pk")[:_MOST_READINGS])
    last: dict[tuple[str, str], Mapping[str, Any]] = {}  # as JSON holds it
    histories: dict[tuple[str, str], list[tuple[date, float]]] = {}
    for reading in readings:  # the newest first
        for signal, found in reading.signals.items():
            key = (str(reading.certificate.policy), signal)
            last.setdefault(key, found)
            if found["distance"] is not None:
                told = (reading.checked_at.date(), found["distance"])
                histories.setdefault(key, []).append(told)
    return tuple(
        SignalDrift(
            *key,
            live=found["live"],
            distance=found["distance"],
            psi=found["psi"],
            has_drifted=found["has_drifted"],
            history=tuple(reversed(histories.get(key, []))),
        )
        for key, found in sorted(last.items())
    )


def _waiting(scope: Scope, reader: User) -> Waiting:
    gaps: QuerySet[Gap] = Gap.objects.visible_to(reader).open()
    escalations = Escalation.objects.visible_to(reader).waiting()
    if scope.knowledge_base:
        gaps = gaps.filter(knowledge_base=scope.knowledge_base)
        escalations = escalations.filter(answer__knowledge_base=scope.knowledge_base)
    ranked = gaps.order_by("-impact_score", "-pk").defer("vector")
    return Waiting(gaps.count(), tuple(ranked[:_TOP_GAPS]), escalations.count())
