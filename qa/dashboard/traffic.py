"""Counting decided answers by day, and reading what was asked in a period.

Nothing is written while a question is answered, and no page counts a million answers. A day
is counted as a whole, in one transaction: today's at each run, an ended one until it was
counted an hour after its end, when no transaction of that day is still open, and again
when a trigger noted that its answers or votes changed since.

How long answering took is kept as counts in buckets that grow by a constant factor. A
percentile read from them is off by at most 2.5 % of itself, however many days are added
up: counts of buckets can be added, percentiles cannot.

References:
    Masson, Rim and Lee, "DDSketch: a fast and fully-mergeable quantile sketch with
    relative-error guarantees", VLDB 12 (2019).
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

from django.db import connection, transaction
from django.db.models import F, Max, Min, Model, QuerySet, Sum
from django.db.models.functions import TruncWeek
from django.utils import timezone

from qa.answers.models import Answer
from qa.dashboard.models import (
    ChangedDay,
    CountedDay,
    DailyCount,
    DailyLatency,
    DailyQuerySet,
)

_DAY = timedelta(days=1)
# How long a transaction that wrote an answer may last beyond its day.
_SETTLED_AFTER = _DAY + timedelta(hours=1)
_DAYS_A_RUN = 400  # a year of history within minutes
_LOCK = "SELECT pg_try_advisory_xact_lock(%s)"
_LOCK_KEY = 0x6E657363  # any number that nothing else of this database locks

# An answer is counted once without a tag and once under each of its tags.
_COUNT: Final = Path(__file__).with_name("daily_counts.sql").read_text(encoding="utf-8")


def count_days(*, at: datetime | None = None, most: int = _DAYS_A_RUN) -> int:
    """Count up to `most` days that are due, the earliest first; return how many.

    Safe to run twice at the same time: the second run stops.
    """
    now = at or timezone.now()
    done = 0
    for day in _due(now)[:most]:
        if not _count(day, now):
            break
        done += 1
    return done


def _due(now: datetime) -> list[date]:
    """Return the days to be counted; none of a system that was never asked anything."""
    changed = set(ChangedDay.objects.values_list("day", flat=True).distinct())
    settled = CountedDay.objects.settled(_SETTLED_AFTER).aggregate(last=Max("day"))
    first = settled["last"] and settled["last"] + _DAY
    if first is None:
        earliest = Answer.objects.aggregate(first=Min("created_at"))["first"]
        first = earliest and earliest.astimezone(UTC).date()
    return sorted(changed.union(_days(first, now) if first else ()))


def _days(first: date, now: datetime) -> Iterator[date]:
    today = now.astimezone(UTC).date()
    return (first + _DAY * n for n in range((today - first).days + 1))


@transaction.atomic
def _count(day: date, now: datetime) -> bool:
    """Count one day again; return whether nobody else was counting."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [_LOCK_KEY])
        if not cursor.fetchone()[0]:
            return False
        # What is noted after this is seen by the count, or counted at the next run.
        ChangedDay.objects.filter(day=day).delete()
        DailyCount.objects.filter(day=day).delete()
        DailyLatency.objects.filter(day=day).delete()
        begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
        values: dict[str, Any] = {
            "day": day,
            "begin": begin,
            "end": begin + _DAY,
            "channels": list(Answer.LIVE_CHANNELS),
            "least": MIN_MILLISECONDS,
            "growth": GROWTH,
        }
        cursor.execute(_COUNT, values)
    CountedDay.objects.update_or_create(day=day, defaults={"counted_at": now})
    return True


ACCURACY = 0.025
GROWTH = (1 + ACCURACY) / (1 - ACCURACY)
"""Bucket n holds the times in (GROWTH^(n-1), GROWTH^n], in milliseconds."""
MIN_MILLISECONDS = 0.1  # what is faster counts as this
MAX_DAYS = 731
_MAX_STEPS = 35  # of more days a chart shows weeks

_Rows = TypeVar("_Rows", bound=QuerySet[Any])
_Daily = TypeVar("_Daily", DailyCount, DailyLatency)


def quantile(counts: Mapping[int, int], share: float) -> float | None:
    """Return the milliseconds that a `share` in (0, 1] of the times do not exceed."""
    rank = math.ceil(share * sum(counts.values()))
    for bucket in sorted(counts):
        rank -= counts[bucket]
        if rank <= 0 < counts[bucket]:
            return 2 * GROWTH**bucket / (GROWTH + 1)
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
        """When it begins, and the moment before which it ends."""
        begin = datetime.combine(self.first, time.min, UTC)
        return begin, datetime.combine(self.last + timedelta(days=1), time.min, UTC)


def last_days(days: int) -> Period:
    today = timezone.now().astimezone(UTC).date()
    return Period(today - timedelta(days=days - 1), today)


@dataclass(frozen=True, slots=True)
class Scope:
    """What figures are narrowed to: ids, or None for all."""

    period: Period
    knowledge_base: int | None = None
    tag: int | None = None

    def in_base(self, rows: _Rows, name: str) -> _Rows:
        """Narrow rows to the knowledge base, which they hold as `name`."""
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
    """A day or week of the period; `latency` is None where nothing was decided."""

    begin: date
    answered: int
    refused: int
    failed: int
    up: int
    down: int
    latency: Percentiles | None


@dataclass(frozen=True, slots=True)
class Traffic:
    """A period and its steps in order; `latency` is by outcome, "" for all together."""

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
    """Add up what was asked in the period (two queries)."""
    begin = TruncWeek("day") if scope.period.is_weekly else F("day")
    counted = _in_scope(DailyCount.objects.all(), scope).values_list(
        begin, "outcome", "gate", "reason"
    )
    sums: Counter[tuple[date, str]] = Counter()
    decided: Counter[tuple[str, str, str]] = Counter()
    for row in counted.annotate(Sum("answers"), Sum("up"), Sum("down")):
        day, outcome, gate, reason, answers, up, down = row
        sums.update({(day, outcome): answers, (day, "up"): up, (day, "down"): down})
        decided[outcome, gate, reason] += answers
    timed = _in_scope(DailyLatency.objects.all(), scope).values_list(
        begin, "outcome", "bucket"
    )
    buckets: dict[date | str, Counter[int]] = {}
    for day, outcome, bucket, answers in timed.annotate(Sum("answers")):
        for key in (day, outcome, ""):
            buckets.setdefault(key, Counter())[bucket] += answers
    latency = {key: _percentiles(counts) for key, counts in buckets.items()}
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


def _percentiles(counts: Mapping[int, int]) -> Percentiles | None:
    found = [quantile(counts, share) for share in (0.5, 0.95, 0.99)]
    known = [each for each in found if each is not None]
    return Percentiles(*known) if len(known) == len(found) else None


def _in_scope(rows: "DailyQuerySet[_Daily]", scope: Scope) -> "DailyQuerySet[_Daily]":
    """Narrow counts to the scope, without the order that would keep rows apart."""
    period = rows.between(scope.period.first, scope.period.last)
    chosen = period.about(knowledge_base=scope.knowledge_base, tag=scope.tag)
    return chosen.order_by()
