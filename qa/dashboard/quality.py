"""What share of all answers is wrong, told from a stratified sample of reviewed ones.

A sample takes rare kinds of answers more often than common ones, so the share among the
reviewed says little; each stratum counts as much as it has answers. The interval is
Clopper and Pearson's for the effective number of reviews: so many as would be as certain,
were they drawn from all alike.

References:
    Cochran, "Sampling techniques", 3rd edition, 1977, sections 5.3 to 5.5 (the estimator,
    its variance with the finite population correction); Korn and Graubard, "Confidence
    intervals for proportions with small expected number of positive counts estimated from
    survey data", Survey Methodology 24 (1998), for the interval.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from django.db.models import Count, Q, QuerySet
from scipy.special import betaincinv

from kb.tags.models import Tag
from qa.reviews.agreement import Kappa, cohen_kappa
from qa.reviews.models import Review
from qa.reviews.sample_models import ReviewStratum

from .traffic import Period, Scope, moments

CONFIDENCE = 0.95
# A stratum of one or two reviews tells nothing of its own variance: it is drawn towards
# what all reviews say by so many reviews.
_BORROWED = 2.0


@dataclass(frozen=True, slots=True)
class Stratum:
    """Answers of one kind, and what their reviews say.

    Attributes:
        population: Answers of this kind, at least `reviewed`.
        reviewed: Those that were drawn at random and reviewed.
        found: Of these, those that have the fault; 0 to `reviewed`.
    """

    population: int
    reviewed: int
    found: float

    def __post_init__(self) -> None:
        if not 0 <= self.found <= self.reviewed <= self.population:
            msg = (
                f"Of {self.population} answers {self.reviewed} cannot be reviewed and "
                f"{self.found} of these found at fault."
            )
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share of all answers with its 95 % interval, each in [0, 1].

    Attributes:
        share: The estimate, weighted by the strata's sizes.
        low: Where the interval begins.
        high: Where it ends.
        reviewed: The reviews that it rests on.
        population: Answers of all strata.
        covered: Answers of those strata of which at least one was reviewed; of the others
            nothing is known, and neither share nor interval speaks of them.
    """

    share: float
    low: float
    high: float
    reviewed: int
    population: int
    covered: int


def estimate(strata: Iterable[Stratum]) -> Estimate | None:
    """Return the share of all answers that have the fault; None where none was reviewed."""
    given = list(strata)
    known = [stratum for stratum in given if stratum.reviewed]
    if not known:
        return None
    size = np.array([stratum.population for stratum in known], dtype=np.float64)
    reviewed = np.array([stratum.reviewed for stratum in known], dtype=np.float64)
    found = np.array([stratum.found for stratum in known], dtype=np.float64)
    weight = size / size.sum()
    share = float(weight @ (found / reviewed))
    low, high = _interval(share, _effective(size, reviewed, found))
    return Estimate(
        share,
        low,
        high,
        reviewed=int(reviewed.sum()),
        population=sum(stratum.population for stratum in given),
        covered=int(size.sum()),
    )


def _effective(size: np.ndarray, reviewed: np.ndarray, found: np.ndarray) -> float:
    """Return how many reviews drawn from all alike would be as certain; may be infinite."""
    weight = size / size.sum()
    overall = (found.sum() + 0.5) / (reviewed.sum() + 1)
    likely = (found + _BORROWED * overall) / (reviewed + _BORROWED)
    spread = likely * (1 - likely) * size / np.maximum(size - 1, 1)
    variance = float(np.sum(weight**2 * (1 - reviewed / size) * spread / reviewed))
    middle = float(weight @ likely)
    return middle * (1 - middle) / variance if variance else float("inf")


def _interval(share: float, effective: float) -> tuple[float, float]:
    """Return Clopper and Pearson's interval of a share of so many reviews."""
    if np.isinf(effective):
        return share, share
    tail = (1 - CONFIDENCE) / 2
    found, rest = share * effective, (1 - share) * effective
    low = float(betaincinv(found, rest + 1, tail)) if found > 0 else 0.0
    high = float(betaincinv(found + 1, rest, 1 - tail)) if rest > 0 else 1.0
    return min(low, share), max(high, share)


# How many answers and refusals are false, as experts judged a sample of them.


_JUDGED = Q(reviews__state=Review.State.DONE, reviews__round=1)
_OF_ANSWERS = Q(reviews__correctness__isnull=False)
_WRONG = Q(reviews__correctness__lt=Review.Grade.WHOLLY) | Q(
    reviews__truthfulness__lt=Review.Grade.WHOLLY
)
_OF_REFUSALS = Q(reviews__should_be_answered__isnull=False)
_FALSE = Q(reviews__should_be_answered=True)


@dataclass(frozen=True, slots=True)
class Quality:
    """What reviews say of a period's answers; None where none was reviewed.

    Attributes:
        false_answers: Of what was answered, the share that is not wholly correct and
            borne out by its evidence.
        false_refusals: Of what was refused, the share that should have been an answer.
        agreement: Of two experts on whether the same answer was right to show.
    """

    false_answers: Estimate | None
    false_refusals: Estimate | None
    agreement: Kappa


@dataclass(frozen=True, slots=True)
class _Judged:
    """A stratum with its reviews: all, those in the scope, and those found false."""

    outcome: str
    population: int
    judged: int
    answers: int
    wrong: int
    refusals: int
    false: int


def read_quality(scope: Scope) -> Quality:
    """Estimate from the reviews of answers of the period (three queries).

    Samples that overlap count as much as they have answers. Where a stratum is wider
    than the scope, its answers are taken to be in it as often as its reviewed ones are.
    """
    strata = _strata(scope)
    return Quality(
        estimate(_part(each, "answered", each.answers, each.wrong) for each in strata),
        estimate(_part(each, "refused", each.refusals, each.false) for each in strata),
        cohen_kappa(_pairs(scope)),
    )


def _strata(scope: Scope) -> list[_Judged]:
    begin, end = moments(scope.period)
    rows = ReviewStratum.objects.filter(sample__since__lt=end, sample__until__gt=begin)
    if scope.knowledge_base:
        rows = rows.filter(sample__knowledge_base=scope.knowledge_base)
    tagged = Q()
    if scope.tag:
        rows = rows.filter(_may_be_of(scope.tag))
        tagged = _tagged(scope.tag, "reviews__answer__")
    # Of a sample that lies in the period, no answer need be looked up for when it was.
    within = Q(sample__since__gte=begin, sample__until__lte=end)
    asked = _asked(scope.period, "reviews__answer__")
    return [*_judged(rows.filter(within), tagged),
            *_judged(rows.exclude(within), asked & tagged)]  # fmt: skip


def _judged(rows: QuerySet[ReviewStratum], inside: Q) -> list[_Judged]:
    found = rows.annotate(
        judged=Count("reviews", filter=_JUDGED),
        answers=Count("reviews", filter=_JUDGED & inside & _OF_ANSWERS),
        wrong=Count("reviews", filter=_JUDGED & inside & _OF_ANSWERS & _WRONG),
        refusals=Count("reviews", filter=_JUDGED & inside & _OF_REFUSALS),
        false=Count("reviews", filter=_JUDGED & inside & _FALSE),
    ).order_by("pk")
    names = [field.name for field in fields(_Judged)]
    return [_Judged(*row) for row in found.values_list(*names)]


def _part(each: _Judged, outcome: str, inside: int, found: int) -> Stratum:
    """Return the stratum's part that had this outcome and lies in the scope."""
    if not each.judged:
        is_of_it = each.outcome in ("", outcome)
        return Stratum(each.population if is_of_it else 0, 0, 0)
    population = round(each.population * inside / each.judged)
    return Stratum(max(population, inside), inside, found)


def _asked(period: Period, answer: str) -> Q:
    begin, end = moments(period)
    asked = f"{answer}created_at"
    return Q((f"{asked}__gte", begin), (f"{asked}__lt", end))


def _tagged(tag: int, holder: str) -> Q:
    names = ("product_line", "line_of_business")
    return Q(*((f"{holder}{name}", tag) for name in names), _connector=Q.OR)


def _may_be_of(tag: int) -> Q:
    """Whether a stratum may hold answers of the tag: it has it, or does not divide by it."""
    facet = Tag.objects.values_list("facet", flat=True).get(pk=tag)
    return Q((facet, tag)) | ~Q(sample__dimensions__contains=[facet])


def _pairs(scope: Scope) -> list[tuple[int, int]]:
    """Return whether the first and the second expert found the same answer right to show.

    Answers alone: refusals are false much more seldom, and both together would agree by
    what they are.
    """
    asked = _asked(scope.period, "answer__")
    second = Review.objects.done().filter(asked, round=2, answer__outcome="answered")
    if scope.knowledge_base:
        second = second.filter(answer__knowledge_base=scope.knowledge_base)
    if scope.tag:
        second = second.filter(_tagged(scope.tag, "answer__"))
    first = Q(answer__reviews__round=1, answer__reviews__state=Review.State.DONE)
    grades = ("correctness", "truthfulness")
    rows = (
        second.filter(first)
        .order_by()
        .values_list(*(f"answer__reviews__{name}" for name in grades), *grades)
        .annotate(Count("pk"))
    )
    return [
        pair
        for *said, count in rows
        for pair in [(_is_right(said[:2]), _is_right(said[2:]))] * count
    ]


def _is_right(grades: Sequence[int]) -> int:
    return int(all(grade == Review.Grade.WHOLLY for grade in grades))
