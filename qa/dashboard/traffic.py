"""How long answering took, kept as counts in buckets that grow by a constant factor.

A percentile read from them is off by at most 2.5 % of itself, however many days are added
up: counts of buckets can be added, percentiles can not.

References:
    Masson, Rim and Lee, "DDSketch: a fast and fully-mergeable quantile sketch with
    relative-error guarantees", VLDB 12 (2019).
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TypeVar

from django.db.models import F, Sum
from django.db.models.functions import TruncWeek
from django.utils import timezone

from qa.dashboard.models import DailyCount, DailyLatency, DailyQuerySet

ACCURACY = 0.025
GROWTH = (1 + ACCURACY) / (1 - ACCURACY)
LEAST_MILLISECONDS = 0.1  # what is faster counts as this


def bucket_of(milliseconds: float) -> int:
    """Return the number of the bucket: that of all times in (GROWTH^(n-1), GROWTH^n]."""
    return math.ceil(math.log(max(milliseconds, LEAST_MILLISECONDS)) / math.log(GROWTH))


def quantile(counts: Mapping[int, int], share: float) -> float | None:
    """Return the milliseconds that `share` of the times do not exceed; None of none.

    Args:
        counts: How many times fell into each bucket.
        share: In (0, 1].
    """
    rank = math.ceil(share * sum(counts.values()))
    for bucket in sorted(counts):
        rank -= counts[bucket]
        if rank <= 0 < counts[bucket]:
            return 2 * GROWTH**bucket / (GROWTH + 1)
    return None


# What was asked in a period, added up from counts that are alike.


SHARES = (0.5, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Counted:
    """Answers that were decided alike in one step of the period.

    Attributes:
        begin: The first day of the step.
        outcome: "answered", "refused" or "failed".
        gate: What decided; "" where all gates let it pass, or none was reached.
        reason: Why it was refused; "" where it was not.
        answers: How many.
        up: Thumbs up on them.
        down: Thumbs down.
    """

    begin: date
    outcome: str
    gate: str
    reason: str
    answers: int
    up: int
    down: int


@dataclass(frozen=True, slots=True)
class Timed:
    """Answers of one step that took about as long; `bucket` is of `.latency`."""

    begin: date
    outcome: str
    bucket: int
    answers: int


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Milliseconds that half, 95 % and 99 % of the answers did not exceed."""

    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class Decided:
    """How many answers one gate decided so, for one reason."""

    outcome: str
    gate: str
    reason: str
    answers: int


@dataclass(frozen=True, slots=True)
class Step:
    """A day or week of the period.

    Attributes:
        latency: Of what was answered or refused; None where nothing was.
    """

    begin: date
    answered: int
    refused: int
    failed: int
    up: int
    down: int
    latency: Percentiles | None


@dataclass(frozen=True, slots=True)
class Traffic:
    """A period as a whole and step by step, the earliest step first.

    Attributes:
        decided: By outcome, gate and reason, the most frequent first.
        latency: By outcome, and of all together under ""; none where nothing was asked.
    """

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


def traffic(
    begins: Sequence[date], counted: Iterable[Counted], timed: Iterable[Timed]
) -> Traffic:
    """Add up a period whose steps begin on the days `begins`, in that order."""
    outcomes: Counter[tuple[date, str]] = Counter()
    votes: Counter[tuple[date, str]] = Counter()
    decided: Counter[tuple[str, str, str]] = Counter()
    for each in counted:
        outcomes[each.begin, each.outcome] += each.answers
        votes[each.begin, "up"] += each.up
        votes[each.begin, "down"] += each.down
        decided[each.outcome, each.gate, each.reason] += each.answers
    buckets: dict[date | str, Counter[int]] = {}
    for one in timed:
        for key in (one.begin, one.outcome, ""):
            buckets.setdefault(key, Counter())[one.bucket] += one.answers
    latency = {key: _percentiles(counts) for key, counts in buckets.items()}
    steps = tuple(
        Step(
            begin,
            outcomes[begin, "answered"],
            outcomes[begin, "refused"],
            outcomes[begin, "failed"],
            votes[begin, "up"],
            votes[begin, "down"],
            latency.get(begin),
        )
        for begin in begins
    )
    return Traffic(
        answered=sum(step.answered for step in steps),
        refused=sum(step.refused for step in steps),
        failed=sum(step.failed for step in steps),
        up=sum(step.up for step in steps),
        down=sum(step.down for step in steps),
        decided=tuple(Decided(*key, answers) for key, answers in decided.most_common()),
        latency={
            key: found
            for key, found in latency.items()
            if isinstance(key, str) and found is not None
        },
        steps=steps,
    )


def _percentiles(counts: Mapping[int, int]) -> Percentiles | None:
    p50, p95, p99 = (quantile(counts, share) for share in SHARES)
    if p50 is None or p95 is None or p99 is None:
        return None
    return Percentiles(p50, p95, p99)


# What was asked in a period, read from daily counts.


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
