"""What was asked in a period, read from daily counts.

No page counts answers: the rows that are read grow with the days of the period, not with
what was asked.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TypeVar

from django.db.models import F, Sum
from django.db.models.functions import TruncWeek
from django.utils import timezone

from qa.feedback.traffic import Counted, Timed, Traffic, traffic
from qa.models import DailyCount, DailyLatency
from qa.models.rollup import DailyQuerySet

MOST_DAYS = 731
# Of more days a chart shows weeks.
_MOST_STEPS = 35

Row = TypeVar("Row", DailyCount, DailyLatency)


@dataclass(frozen=True, slots=True)
class Period:
    """The days from `first` to `last`, both included, in UTC."""

    first: date
    last: date

    @property
    def is_weekly(self) -> bool:
        """Whether it is shown week by week."""
        return (self.last - self.first).days >= _MOST_STEPS

    @property
    def begins(self) -> tuple[date, ...]:
        """The first days of its steps; the first week may begin before the period."""
        if not self.is_weekly:
            days = (self.last - self.first).days + 1
            return tuple(self.first + timedelta(days=n) for n in range(days))
        monday = self.first - timedelta(days=self.first.weekday())
        weeks = (self.last - monday).days // 7 + 1
        return tuple(monday + timedelta(weeks=n) for n in range(weeks))


def last_days(days: int, *, at: datetime | None = None) -> Period:
    """Return the period of so many days that ends today."""
    today = (at or timezone.now()).astimezone(UTC).date()
    return Period(today - timedelta(days=days - 1), today)


def moments(period: Period) -> tuple[datetime, datetime]:
    """Return when the period begins, and the moment before which it ends."""
    begin = datetime.combine(period.first, time.min, UTC)
    return begin, datetime.combine(period.last + timedelta(days=1), time.min, UTC)


@dataclass(frozen=True, slots=True)
class Scope:
    """What figures are narrowed to: ids, or None for all."""

    period: Period
    knowledge_base: int | None = None
    tag: int | None = None


def read_traffic(scope: Scope) -> Traffic:
    """Add up what was asked in the period (two queries)."""
    begin = TruncWeek("day") if scope.period.is_weekly else F("day")
    counts = _of(DailyCount.objects.all(), scope)
    counted = counts.values_list(begin, "outcome", "gate", "reason").annotate(
        Sum("answers"), Sum("up"), Sum("down")
    )
    times = _of(DailyLatency.objects.all(), scope)
    timed = times.values_list(begin, "outcome", "bucket").annotate(Sum("answers"))
    return traffic(
        scope.period.begins,
        (Counted(*row) for row in counted),
        (Timed(*row) for row in timed),
    )


def _of(rows: "DailyQuerySet[Row]", scope: Scope) -> "DailyQuerySet[Row]":
    """Narrow counts to the scope, without the order that would keep rows apart."""
    period = rows.between(scope.period.first, scope.period.last)
    chosen = period.about(knowledge_base=scope.knowledge_base, tag=scope.tag)
    return chosen.order_by()
