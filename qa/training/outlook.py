"""What experts' reviews have led to so far, what the next ones would, and when."""

from dataclasses import dataclass
from datetime import date, timedelta
from math import ceil, sqrt
from typing import Final, Self

from django.conf import settings
from django.utils import timezone

from kb.documents.models import KnowledgeBase
from probes.cards import ANSWER_KINDS
from qa.calibration.self_calibration_jobs import reviews_until_calibration
from qa.reviews.models import Review
from qa.reviews.sample_plan import Estimate

from .retraining import reviewed_answers, reviews_until_due

NEXT: Final = 50
_WEEKS: Final = 4


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A share with its interval, and the one expected after `NEXT` more reviews."""

    now: Estimate
    low: float
    high: float

    @classmethod
    def of(cls, now: Estimate) -> Self:
        """Project the interval for an unchanged share, shrinking with the root of n."""
        shrunk = sqrt(now.reviewed / (now.reviewed + NEXT))
        low = now.share - (now.share - now.low) * shrunk
        return cls(now, low, now.share + (now.high - now.share) * shrunk)


@dataclass(frozen=True, slots=True)
class Outlook:
    """The progress of reviews and what further ones lead to.

    Attributes:
        a_week: Recent reviews per week, or the planned number if there were none.
        is_planned: Whether `a_week` is the planned number.
        calibrations: Knowledge bases, each with the reviews still needed to calibrate
            it.
        until_retraining: Reviews still needed for the next retraining; None if none
            will start.
        retraining_on: The expected date of it at this pace, if known.
    """

    reviewed: int
    a_week: float
    is_planned: bool
    calibrations: tuple[tuple[str, int], ...]
    until_retraining: int | None
    retraining_on: date | None
    false_answers: Narrowed | None
    false_refusals: Narrowed | None


def read_outlook(
    false_answers: Estimate | None, false_refusals: Estimate | None
) -> Outlook:
    """Return the progress of reviews; the estimates are those of the dashboard."""
    reviewed = reviewed_answers()
    a_week, is_planned = _pace()
    waits = [reviews_until_due(kind, reviewed) for kind in ANSWER_KINDS]
    until = min((wait for wait in waits if wait is not None), default=None)
    bases = KnowledgeBase.objects.in_use().order_by("name")
    waiting = ((base.name, reviews_until_calibration(base)) for base in bases)
    return Outlook(
        reviewed=reviewed,
        a_week=a_week,
        is_planned=is_planned,
        calibrations=tuple(
            (name, count) for name, count in waiting if count is not None
        ),
        until_retraining=until,
        retraining_on=None if until is None else _day(until, a_week),
        false_answers=Narrowed.of(false_answers) if false_answers else None,
        false_refusals=Narrowed.of(false_refusals) if false_refusals else None,
    )


def _pace() -> tuple[float, bool]:
    since = timezone.now() - timedelta(weeks=_WEEKS)
    done = Review.objects.done().filter(round=1, reviewed_at__gte=since).count()
    if done:
        return done / _WEEKS, False
    twice = 1 + settings.REVIEW_SECOND_SHARE
    hours: float = settings.REVIEW_HOURS_A_WEEK
    return hours * 60 / settings.REVIEW_MINUTES / twice, True


def _day(reviews: int, a_week: float) -> date | None:
    if a_week <= 0:
        return None
    return timezone.localdate() + timedelta(days=ceil(7 * reviews / a_week))
