"""Counting decided answers by day.

Answering a question writes no counts, and no page counts a million answers. A day is
counted as a whole, in one transaction: today at each run, a past day until it has been
counted an hour after its end, when no transaction of that day is still open, and again
when a trigger notes that its answers, votes or reviews have changed.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import Max, Min
from django.utils import timezone

from qa.answers.models import Answer
from qa.dashboard.models import (
    ChangedDay,
    CountedDay,
    DailyCount,
    DailyLatency,
    DailyModel,
    DailyShadow,
)
from qa.dashboard.shadows import JUDGING
from qa.dashboard.traffic import GROWTH, MIN_MILLISECONDS, MODEL_GROWTH

_DAY = timedelta(days=1)
# From this long after its start, no transaction that wrote a day's answers is open.
_SETTLED_AFTER = _DAY + timedelta(hours=1)
_DAYS_A_RUN = 400  # a year of history within minutes
_LOCK = "SELECT pg_try_advisory_xact_lock(%s)"
_LOCK_KEY = 0x6E657363  # any number that nothing else in this database locks

# An answer is counted once without a tag and once under each of its tags.
_COUNTED: Final = (DailyCount, DailyLatency, DailyShadow, DailyModel)
_COUNTS: Final = tuple(
    Path(__file__).with_name(f"daily_{what}.sql").read_text(encoding="utf-8")
    for what in ("counts", "shadows", "models")
)


def count_days(*, at: datetime | None = None, most: int = _DAYS_A_RUN) -> int:
    """Count up to `most` days that are due, the earliest first; return how many.

    Safe to run concurrently: the second run stops.
    """
    now = at or timezone.now()
    done = 0
    for day in _due(now)[:most]:
        if not _count(day, now):
            break
        done += 1
    return done


def _due(now: datetime) -> list[date]:
    """Return the days to be counted; none if no question was ever asked."""
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
    """Count one day again; return False if another run is counting."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [_LOCK_KEY])
        if not cursor.fetchone()[0]:
            return False
        # A change noted after this is either in the count or counted by the next run.
        ChangedDay.objects.filter(day=day).delete()
        for rows in _COUNTED:
            rows.objects.filter(day=day).delete()
        begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
        values: dict[str, Any] = {
            "day": day,
            "begin": begin,
            "end": begin + _DAY,
            "channels": list(Answer.LIVE_CHANNELS),
            "least": MIN_MILLISECONDS,
            "growth": GROWTH,
            "model_growth": MODEL_GROWTH,
            "judging": JUDGING,
        }
        for count in _COUNTS:
            cursor.execute(count, values)
    CountedDay.objects.update_or_create(day=day, defaults={"counted_at": now})
    return True
