"""Reading a period's questions and times from the counts of its days.

Times are stored as counts in buckets that grow by a constant factor. A percentile read
from them is off by at most 2.5 % of itself, however many days are added up: counts of
buckets can be added, percentiles cannot.

References:
    Masson, Rim and Lee, "DDSketch: a fast and fully-mergeable quantile sketch with
    relative-error guarantees", VLDB 12 (2019).
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, TypeVar

from django.db.models import F, Model, QuerySet, Sum
from django.db.models.functions import TruncWeek
from django.utils import timezone

from qa.dashboard.models import Daily, DailyCount, DailyLatency, DailyQuerySet

ACCURACY = 0.025
GROWTH = (1 + ACCURACY) / (1 - ACCURACY)
"""Bucket n holds the times in (GROWTH^(n-1), GROWTH^n], in milliseconds."""
MODEL_GROWTH = GROWTH**2
"""The same for models' times, accurate to 5 %: there is a row per model and bucket."""
MIN_MILLISECONDS = 0.1  # faster times count as this
MAX_DAYS = 731
_MAX_STEPS = 35  # for more days, charts show weeks

_Rows = TypeVar("_Rows", bound=QuerySet[Any])
_Daily = TypeVar("_Daily", bound=Daily)


def quantile(
    counts: Mapping[int, int], share: float, growth: float = GROWTH
) -> float | None:
    """Return the milliseconds that a `share` in (0, 1] of the times do not exceed."""
    rank = math.ceil(share * sum(counts.values()))
    for bucket in sorted(counts):
        rank -= counts[bucket]
        if rank <= 0 < counts[bucket]:
            return 2 * growth**bucket / (growth + 1)
    return None


@dataclass(frozen=True, slots=True)
class Period:
    """The days from `first` to `last`, both included, in UTC."""

    first: date
    last: date

    @property
    def is_weekly(self) -> bool:
        return (self.last - self.first).days >= _MAX_STEPS

    @property
    def begins(self) -> tuple[date, ...]:
        """The first days of its steps; the first week may begin before the period."""
        weekday = self.first.weekday() if self.is_weekly else 0
        first = self.first - timedelta(days=weekday)
        length = 7 if self.is_weekly else 1
        steps = (self.last - first).days // length + 1
        return tuple(first + timedelta(days=length * n) for n in range(steps))

    @property
    def moments(self) -> tuple[datetime, datetime]:
        """Its start, and its end, which is excluded."""
        begin = datetime.combine(self.first, time.min, UTC)
        return begin, datetime.combine(self.last + timedelta(days=1), time.min, UTC)


def last_days(days: int) -> Period:
    today = timezone.now().astimezone(UTC).date()
    return Period(today - timedelta(days=days - 1), today)


@dataclass(frozen=True, slots=True)
class Scope:
    """The filters of the figures: ids, or None for all."""

    period: Period
    knowledge_base: int | None = None
    tag: int | None = None

    def in_base(self, rows: _Rows, name: str) -> _Rows:
        """Narrow rows to the knowledge base, which is their field `name`."""
        base = self.knowledge_base
        return rows.filter(**{name: base}) if base else rows


def make_scope(
    days: int, knowledge_base: Model | None = None, tag: Model | None = None
) -> Scope:
    return Scope(
        last_days(days),
        knowledge_base=knowledge_base.pk if knowledge_base else None,
        tag=tag.pk if tag else None,
    )


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Milliseconds that half, 95 % and 99 % of the answers did not exceed."""

    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class Decided:
    outcome: str
    gate: str
    reason: str
    answers: int


@dataclass(frozen=True, slots=True)
class Step:
    """A day or week of the period; `latency` is None if nothing was decided."""

    begin: date
    answered: int
    refused: int
    failed: int
    up: int
    down: int
    latency: Percentiles | None


@dataclass(frozen=True, slots=True)
class Traffic:
    """A period's counts and its steps; `latency` is by outcome, "" for all together."""

    answered: int
    refused: int
    failed: int
    up: int
    down: int
    decided: tuple[Decided, ...]
    latency: Mapping[str, Percentiles]
    steps: tuple[Step, ...]

    @property
    def questions(self) -> int:
        return self.answered + self.refused + self.failed


_SUMS = ("answered", "refused", "failed", "up", "down")


def read_traffic(scope: Scope) -> Traffic:
    """Add up the counts of the period's days (two queries)."""
    begin = TruncWeek("day") if scope.period.is_weekly else F("day")
    counted = in_scope(DailyCount.objects.all(), scope).values_list(
        begin, "outcome", "gate", "reason"
    )
    sums: Counter[tuple[date, str]] = Counter()
    decided: Counter[tuple[str, str, str]] = Counter()
    for row in counted.annotate(Sum("answers"), Sum("up"), Sum("down")):
        day, outcome, gate, reason, answers, up, down = row
        sums.update({(day, outcome): answers, (day, "up"): up, (day, "down"): down})
        decided[outcome, gate, reason] += answers
    timed = in_scope(DailyLatency.objects.all(), scope).values_list(
        begin, "outcome", "bucket"
    )
    buckets: dict[date | str, Counter[int]] = {}
    for day, outcome, bucket, answers in timed.annotate(Sum("answers")):
        for key in (day, outcome, ""):
            buckets.setdefault(key, Counter())[bucket] += answers
    latency = {key: percentiles(counts) for key, counts in buckets.items()}
    steps = tuple(
        Step(
            begin=day,
            **{name: sums[day, name] for name in _SUMS},
            latency=latency.get(day),
        )
        for day in scope.period.begins
    )
    return Traffic(
        **{name: sum(getattr(step, name) for step in steps) for name in _SUMS},
        decided=tuple(Decided(*key, answers) for key, answers in decided.most_common()),
        latency={
            key: found
            for key, found in latency.items()
            if isinstance(key, str) and found is not None
        },
        steps=steps,
    )


def percentiles(
    counts: Mapping[int, int], growth: float = GROWTH
) -> Percentiles | None:
    found = [quantile(counts, share, growth) for share in (0.5, 0.95, 0.99)]
    known = [each for each in found if each is not None]
    return Percentiles(*known) if len(known) == len(found) else None


def in_scope(rows: "DailyQuerySet[_Daily]", scope: Scope) -> "DailyQuerySet[_Daily]":
    """Narrow counts to the scope, unordered, as an order would split their groups."""
    period = rows.between(scope.period.first, scope.period.last)
    chosen = period.about(knowledge_base=scope.knowledge_base, tag=scope.tag)
    return chosen.order_by()
