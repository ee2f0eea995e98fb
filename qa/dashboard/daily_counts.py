"""Counting decided answers by day, so that no page counts a million of them.

Nothing is written while a question is answered. A day is counted as a whole, in one
transaction: today's at each run, an ended one until it was counted an hour after its end,
when no transaction of that day is still open, and again when a trigger noted that its
answers or votes changed since.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Max, Min
from django.utils import timezone

from qa.answers.models import Answer
from qa.dashboard.models import ChangedDay, CountedDay, DailyCount, DailyLatency
from qa.dashboard.traffic import GROWTH, MIN_MILLISECONDS

_DAY = timedelta(days=1)
# How long a transaction that wrote an answer may last beyond its day.
_SETTLED_AFTER = _DAY + timedelta(hours=1)
_DAYS_A_RUN = 400  # a year of history within minutes
_LOCK = "SELECT pg_try_advisory_xact_lock(%s)"
_LOCK_KEY = 0x6E657363  # any number that nothing else of this database locks

# An answer is counted once without a tag and once under each of its tags.
_COUNT = """
WITH asked AS MATERIALIZED (
    SELECT a.knowledge_base_id, a.outcome, a.gate, a.shown_reason AS reason, a.product_line_id,
        a.line_of_business_id, voted.up, voted.down,
        CASE WHEN took.ms IS NOT NULL AND a.outcome <> 'failed'
            THEN ceil(ln(greatest(took.ms, %(least)s)) / ln(%(growth)s::float8)) END AS bucket
    FROM qa_answer a
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE is_up) AS up,
            count(*) FILTER (WHERE NOT is_up) AS down
        FROM qa_vote WHERE answer_id = a.id
    ) voted
    CROSS JOIN LATERAL (
        SELECT sum(value::float8) AS ms FROM jsonb_each_text(a.milliseconds)
        WHERE position('.' IN key) = 0
    ) took
    WHERE a.created_at >= %(begin)s AND a.created_at < %(end)s
        AND a.outcome <> 'pending' AND a.channel = ANY(%(channels)s)
), tagged AS MATERIALIZED (
    SELECT asked.*, tag.id AS tag_id FROM asked CROSS JOIN LATERAL (
        SELECT DISTINCT id
        FROM (VALUES (NULL::bigint), (product_line_id), (line_of_business_id)) each (id)
    ) tag
), counted AS (
    INSERT INTO qa_dailycount (day, knowledge_base_id, tag_id, outcome, gate, reason,
        answers, up, down)
    SELECT %(day)s, knowledge_base_id, tag_id, outcome, gate, reason, count(*), sum(up),
        sum(down)
    FROM tagged GROUP BY knowledge_base_id, tag_id, outcome, gate, reason
)
INSERT INTO qa_dailylatency (day, knowledge_base_id, tag_id, outcome, bucket, answers)
SELECT %(day)s, knowledge_base_id, tag_id, outcome, bucket, count(*)
FROM tagged WHERE bucket IS NOT NULL
GROUP BY knowledge_base_id, tag_id, outcome, bucket
"""


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
