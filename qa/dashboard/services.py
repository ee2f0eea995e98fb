"""Everything the dashboard shows: traffic, quality, drift, and what waits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, Max, Q, QuerySet

from accounts.roles import Role, has_role, refuse_elsewhere
from kb.documents.models import KnowledgeBase
from kb.tags.models import Tag
from qa.answers.models import Answer
from qa.calibration.models import DriftReading
from qa.dashboard.models import CountedDay
from qa.gaps.escalation_models import Escalation
from qa.gaps.models import Gap
from qa.reviews.agreement import Kappa, judged_twice, kappa_of_right
from qa.reviews.models import Review
from qa.reviews.sample_models import ReviewStratum
from qa.reviews.sample_plan import Estimate, Stratum, estimate

from .model_use import ModelUse, read_model_use
from .shadows import ShadowGate, read_shadows
from .traffic import Scope, Traffic, read_traffic

_TOP_GAPS = 5
_MAX_READINGS = 90  # taken nightly; a chart cannot show more than a quarter


_JUDGED = Q(reviews__state=Review.State.DONE, reviews__round=1)
_OF_ANSWERS = Q(reviews__correctness__isnull=False)
_WRONG = (
    Q(reviews__correctness__lt=Review.Grade.WHOLLY)
    | Q(reviews__truthfulness__lt=Review.Grade.WHOLLY)
    | Q(reviews__falls_short=True)
)
_OF_REFUSALS = Q(reviews__should_be_answered__isnull=False)
_FALSE = Q(reviews__should_be_answered=True)


@dataclass(frozen=True, slots=True)
class Quality:
    """The quality of a period's answers as reviewed; None where none was reviewed.

    Attributes:
        false_answers: Share of the answers that are not wholly correct or not wholly
            supported by their evidence.
        false_refusals: Share of the refusals that should have been answers.
        agreement: Of two experts on whether the same answer was right to show.
    """

    false_answers: Estimate | None
    false_refusals: Estimate | None
    agreement: Kappa


def read_quality(scope: Scope) -> Quality:
    """Estimate quality from the reviews of the period's answers (three queries)."""
    return Quality(*read_false_shares(scope), _agreement(scope))


def read_false_shares(scope: Scope) -> tuple[Estimate | None, Estimate | None]:
    """Return the shares of false answers and of false refusals (two queries).

    Overlapping samples are weighted by their numbers of answers. If a stratum is wider
    than the scope, its share in the scope is estimated from its reviewed answers.
    """
    strata = _strata(scope)
    return (
        estimate(_part(each, "answered", "answers", "wrong") for each in strata),
        estimate(_part(each, "refused", "refusals", "false") for each in strata),
    )


def _strata(scope: Scope) -> list[Mapping[str, Any]]:
    """Return strata with counts of reviews: judged, in the scope, and found false."""
    begin, end = scope.period.moments
    rows = ReviewStratum.objects.filter(sample__since__lt=end, sample__until__gt=begin)
    rows = scope.in_base(rows, "sample__knowledge_base")
    tagged = Q()
    if scope.tag:
        # Strata that may hold answers of the tag: they have it, or are not split by it.
        facet = Tag.objects.values_list("facet", flat=True).get(pk=scope.tag)
        rows = rows.filter(
            Q((facet, scope.tag)) | ~Q(sample__dimensions__contains=[facet])
        )
        tagged = _tagged(scope.tag, "reviews__answer__")
    # For samples within the period, answers need not be looked up for their time.
    within = Q(sample__since__gte=begin, sample__until__lte=end)
    in_period = _in_period(scope, "reviews__answer__")
    return [*_judged(rows.filter(within), tagged),
            *_judged(rows.exclude(within), in_period & tagged)]  # fmt: skip


def _judged(rows: QuerySet[ReviewStratum], inside: Q) -> Iterable[Mapping[str, Any]]:
    return (
        rows.annotate(
            judged=Count("reviews", filter=_JUDGED),
            answers=Count("reviews", filter=_JUDGED & inside & _OF_ANSWERS),
            wrong=Count("reviews", filter=_JUDGED & inside & _OF_ANSWERS & _WRONG),
            refusals=Count("reviews", filter=_JUDGED & inside & _OF_REFUSALS),
            false=Count("reviews", filter=_JUDGED & inside & _FALSE),
        )
        .order_by("pk")
        .values(
            "outcome", "population", "judged", "answers", "wrong", "refusals", "false"
        )
    )


def _part(row: Mapping[str, Any], outcome: str, inside: str, found: str) -> Stratum:
    """Return the part of the stratum that had this outcome and is in the scope."""
    if not row["judged"]:
        is_of_it = row["outcome"] in ("", outcome)
        return Stratum(row["population"] if is_of_it else 0, 0, 0)
    population = round(row["population"] * row[inside] / row["judged"])
    return Stratum(max(population, row[inside]), row[inside], row[found])


def _in_period(scope: Scope, answer: str) -> Q:
    begin, end = scope.period.moments
    return Q((f"{answer}created_at__gte", begin), (f"{answer}created_at__lt", end))


def _tagged(tag: int, answer: str) -> Q:
    return Q((f"{answer}product_line", tag)) | Q((f"{answer}line_of_business", tag))


def _agreement(scope: Scope) -> Kappa:
    """Return how far the first and the second expert agree on what was right to show.

    For answers only: refusals are false much more rarely, so that pooling both would
    count the difference between them as agreement.
    """
    answered = Q(answer__outcome=Answer.Outcome.ANSWERED)
    rows = Review.objects.filter(_in_period(scope, "answer__"), answered).order_by()
    rows = scope.in_base(rows, "answer__knowledge_base")
    if scope.tag:
        rows = rows.filter(_tagged(scope.tag, "answer__"))
    return kappa_of_right(judged_twice(rows))


@dataclass(frozen=True, slots=True)
class SignalDrift:
    """How far one signal of a policy has moved since it was certified.

    Attributes:
        distance: Kolmogorov-Smirnov distance of the last reading, in [0, 1]; None if
            too few answers had a value.
        psi: Population stability index of the last reading.
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
    """What waits for people now, whatever the period; gaps that the reader may see."""

    gaps: int
    top_gaps: tuple[Gap, ...]
    escalations: int


@dataclass(frozen=True, slots=True)
class Dashboard:
    """The figures of a scope for one reader; `drift` is None if they may not see it."""

    scope: Scope
    counted_at: datetime | None
    traffic: Traffic
    quality: Quality
    shadows: tuple[ShadowGate, ...]
    models: tuple[ModelUse, ...]
    drift: tuple[SignalDrift, ...] | None
    waiting: Waiting


def base_shown_to(reader: User, wanted: KnowledgeBase | None) -> KnowledgeBase | None:
    """Return the knowledge base selected for the dashboard, or None for all of them.

    A user with roles in single ones sees one of these, by default the first by name.
    """
    if wanted is not None:
        refuse_elsewhere(reader, wanted.pk, Role.SME)
        return wanted
    if has_role(reader, Role.SME):
        return None
    mine = KnowledgeBase.objects.of_role(reader, Role.SME)
    return mine.order_by("name").first()


def read_dashboard(scope: Scope, *, reader: User) -> Dashboard:
    """Read everything (14 queries); gaps and escalations are not filtered by tag."""
    return Dashboard(
        scope,
        CountedDay.objects.aggregate(at=Max("counted_at"))["at"],
        read_traffic(scope),
        read_quality(scope),
        read_shadows(scope),
        read_model_use(scope),
        _drift(scope) if reader.has_perm("qa.view_driftreading") else None,
        _waiting(scope, reader),
    )


def _drift(scope: Scope) -> tuple[SignalDrift, ...]:
    begin, end = scope.period.moments
    rows = DriftReading.objects.filter(
        certificate__policy__is_active=True, checked_at__gte=begin, checked_at__lt=end
    ).select_related("certificate__policy")
    rows = scope.in_base(rows, "certificate__policy__knowledge_base")
    last: dict[tuple[str, str], Mapping[str, Any]] = {}  # as JSON holds it
    histories: dict[tuple[str, str], list[tuple[date, float]]] = {}
    for reading in rows.order_by("-checked_at", "-pk")[:_MAX_READINGS]:
        for signal, found in reading.signals.items():
            key = (str(reading.certificate.policy), signal)
            last.setdefault(key, found)
            if found["distance"] is not None:
                point = (reading.checked_at.date(), found["distance"])
                histories.setdefault(key, []).insert(0, point)
    return tuple(
        SignalDrift(
            *key,
            live=found["live"],
            distance=found["distance"],
            psi=found["psi"],
            has_drifted=found["has_drifted"],
            history=tuple(histories.get(key, [])),
        )
        for key, found in sorted(last.items())
    )


def _waiting(scope: Scope, reader: User) -> Waiting:
    gaps = scope.in_base(Gap.objects.visible_to(reader).open(), "knowledge_base")
    escalations = scope.in_base(
        Escalation.objects.visible_to(reader).waiting(), "answer__knowledge_base"
    )
    ranked = gaps.order_by("-impact_score", "-pk").defer("vector")
    return Waiting(gaps.count(), tuple(ranked[:_TOP_GAPS]), escalations.count())
