"""Drawing answers for review: by hand, or weekly within the experts' time budget."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import (
    BooleanField,
    Case,
    CharField,
    Count,
    Exists,
    F,
    OuterRef,
    Q,
    QuerySet,
    Value,
    When,
    Window,
)
from django.db.models.expressions import RawSQL
from django.db.models.functions import MD5, Cast, Concat, RowNumber, TruncDate
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from accounts.roles import refuse_elsewhere
from jobs.models import Job
from jobs.run import JobRun
from jobs.services import enqueue
from kb.documents.models import KnowledgeBase, check_writable
from kb.tags.models import Tag
from qa.answers.models import Answer
from qa.exceptions import InvalidSampleError
from qa.pipeline.gates import Gate
from qa.reviews.models import Review
from qa.reviews.sample_models import ReviewSample, ReviewStratum
from qa.reviews.sample_plan import (
    CLEAR,
    CLOSE,
    DIMENSIONS,
    Cell,
    Plan,
    cell_fields,
    plan_sample,
    size_for,
)
from qa.votes.models import Vote

logger = logging.getLogger(__name__)

KIND = "qa.draw_reviews"
MAX_REVIEWS = 5_000
"""The most answers that one sample may have."""
_FIRST_WINDOW = timedelta(days=7)
_LATELY = timedelta(days=28)
_SEED_LIMIT = 2**31
MIN_HOURS, MAX_HOURS = 0.05, 200.0  # of a sample
# An answer is close if a number is near its threshold, or if it was answered although
# some number failed its threshold. A threshold of 0 lets everything pass.
_MARGIN = 0.05
_IS_CLOSE = """EXISTS (
    SELECT FROM jsonb_array_elements(qa_answer.signals) s
    WHERE jsonb_typeof(s->'value') = 'number' AND jsonb_typeof(s->'threshold') = 'number'
        AND (s->>'threshold')::float <> 0 AND (
            (s->>'value')::float
                BETWEEN (s->>'threshold')::float - %s AND (s->>'threshold')::float + %s
            OR qa_answer.outcome = 'answered' AND s->'passed' = 'false'
        )
)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleOrder:
    """The parameters of a sample, as in `ReviewSample`; `check_order` checks them."""

    knowledge_base: int
    hours: float
    minutes_a_review: float
    second_share: float
    since: datetime
    until: datetime
    seed: int

    @property
    def size(self) -> int:
        return size_for(self.hours, self.minutes_a_review, self.second_share)


def check_order(order: SampleOrder) -> SampleOrder:
    """Return the order if it is valid.

    Raises:
        InvalidSampleError: A value is out of range; the message has the remedy.
    """
    limits = {
        "hours": (MIN_HOURS, MAX_HOURS),
        "minutes_a_review": (0.25, 120.0),
        "second_share": (0.0, 1.0),
        "seed": (0, _SEED_LIMIT - 1),
    }
    for name, (least, most) in limits.items():
        value = getattr(order, name)
        if not least <= value <= most:  # also true for NaN
            raise InvalidSampleError(
                f"{name} {value} is not in the range {least:g} to {most:g}; change it."
            )
    if order.since >= order.until:
        raise InvalidSampleError(
            f"The window ends at {order.until:%Y-%m-%d %H:%M}, before it begins; take a "
            "later end."
        )
    if order.until > timezone.now():
        raise InvalidSampleError(
            f"The window ends at {order.until:%Y-%m-%d %H:%M}, in the future; choose "
            "now or earlier."
        )
    if order.size > MAX_REVIEWS:
        raise InvalidSampleError(
            f"{order.hours:g} hours are {order.size} answers, but a sample may have at "
            f"most {MAX_REVIEWS}; take fewer hours or more minutes per review."
        )
    return order


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A drawn answer; those with the smallest `again`, a digest, are reviewed twice."""

    cell: Cell
    population: int
    answer: UUID
    again: str
    tags: tuple[int | None, ...]


@transaction.atomic
def draw_sample(order: SampleOrder, *, by: User | None) -> ReviewSample | None:
    """Draw answers that have no review yet, and add them to the review queue.

    The result depends only on the window's answers, the votes and the seed. Questions
    from evaluations, questions asked again automatically and word-for-word answers,
    which teach nothing, are left out.

    Returns None if there is nothing to draw from.
    """
    check_order(order)
    # Two concurrent draws could both pick an answer that neither has drawn yet.
    with connection.cursor() as sql:
        sql.execute(
            "SELECT pg_advisory_xact_lock(hashtext('qa.draw_reviews'), %s)",
            [order.knowledge_base],
        )
    rows = _answers(order)
    plan = plan_sample(_counts(rows), order.size)
    if not plan.drawn:
        return None
    sample = ReviewSample(
        **{**asdict(order), "knowledge_base": None},
        dimensions=[*plan.dimensions],
        drawn_by=by,
    )
    sample.knowledge_base_id = order.knowledge_base
    sample.save()
    _draw(sample, plan, rows)
    return sample


def enqueue_draw(order: SampleOrder, *, by: User | None) -> Job:
    """Enqueue the drawing of a sample; on a large table it takes seconds."""
    check_order(order)
    check_writable(by, order.knowledge_base)
    base = KnowledgeBase.objects.get(pk=order.knowledge_base)
    parameters = {
        **asdict(order),
        "knowledge_base_slug": base.slug,
        "since": order.since.isoformat(),
        "until": order.until.isoformat(),
    }
    key = f"{KIND} {order.knowledge_base} {order.since} {order.until}"
    return enqueue(KIND, parameters, owner=by, idempotency_key=key[:200])


def draw_in_background(run: JobRun) -> dict[str, object]:
    """Draw the sample of `enqueue_draw` once; the handler of jobs of `KIND`."""
    if "sample" in run.cursor:  # drawn by an attempt that died before reporting it
        return {name: run.cursor[name] for name in ("sample", "answers")}
    by = User.objects.filter(pk=run.owner_id).first() if run.owner_id else None
    refuse_elsewhere(by, run.parameters["knowledge_base"])
    with run.step() as step:
        times = {
            name: parse_datetime(run.parameters[name]) for name in ("since", "until")
        }
        given = {**run.parameters, **times}
        order = {each.name: given[each.name] for each in fields(SampleOrder)}
        sample = draw_sample(SampleOrder(**order), by=by)
        drawn: dict[str, object] = {
            "sample": sample.pk if sample else None,
            "answers": sample.answers if sample else 0,
        }
        step.advance(done=1, total=1, cursor=drawn)
    return drawn


def draw_weekly() -> int:
    """Enqueue a sample of each knowledge base since its last; return their number.

    The size is the experts' weekly time less the recently drawn reviews that are still
    open, so nobody gets more than they can do. Older open reviews do not count: some
    can never be done, such as a second opinion where there is only one expert, and
    would block drawing forever.
    """
    until = timezone.now()
    hours = settings.REVIEW_HOURS_A_WEEK
    minutes = settings.REVIEW_MINUTES
    drawn = 0
    for knowledge_base in KnowledgeBase.objects.in_use().order_by("pk"):
        waiting = Review.objects.open().filter(
            answer__knowledge_base=knowledge_base, created_at__gte=until - _LATELY
        )
        most = min(MAX_HOURS, MAX_REVIEWS * minutes / 60)
        left = min(hours - waiting.count() * minutes / 60, most)
        if left < max(minutes / 60, MIN_HOURS):
            continue
        # A sample drawn by hand may not cover every day.
        scheduled = ReviewSample.objects.filter(
            knowledge_base=knowledge_base, drawn_by=None
        )
        last = scheduled.order_by("-until").first()
        since = last.until if last else until - _FIRST_WINDOW
        if since >= until:
            continue
        order = SampleOrder(
            knowledge_base=knowledge_base.pk,
            hours=left,
            minutes_a_review=minutes,
            second_share=settings.REVIEW_SECOND_SHARE,
            since=since,
            until=until,
            seed=int(until.timestamp()) % _SEED_LIMIT,
        )
        enqueue_draw(order, by=None)
        drawn += 1
    return drawn


def _answers(order: SampleOrder) -> QuerySet[Answer]:
    """Return the answers that may be drawn, annotated with the strata's fields."""
    votes = Vote.objects.filter(answer=OuterRef("pk"))
    decided = (Answer.Outcome.ANSWERED, Answer.Outcome.REFUSED)
    down = Exists(votes.filter(is_up=False))
    is_close = RawSQL(_IS_CLOSE, [_MARGIN, _MARGIN], BooleanField())  # noqa: S611  # own constant
    return (
        Answer.objects.live()
        .exclude(gate=Gate.VERBATIM.value)
        .filter(
            ~Exists(Review.objects.filter(answer=OuterRef("pk"))),
            knowledge_base=order.knowledge_base,
            created_at__gte=order.since,
            created_at__lt=order.until,
            outcome__in=decided,
        )
        .annotate(
            vote=Case(
                When(down, then=Value("down")),
                When(Exists(votes), then=Value("up")),
                default=Value("none"),
            ),
            certainty=Case(
                When(Q(down) | Q(is_close), then=Value(CLOSE)), default=Value(CLEAR)
            ),
            period=TruncDate("created_at", tzinfo=UTC),
        )
        .order_by()
    )


def _counts(rows: QuerySet[Answer]) -> dict[Cell, int]:
    names = cell_fields(DIMENSIONS)
    found = rows.values_list(*names).annotate(count=Count("pk"))
    return {
        Cell(**dict(zip(names, values, strict=True))): count for *values, count in found
    }


def _draw(sample: ReviewSample, plan: Plan, rows: QuerySet[Answer]) -> None:
    drawn = list(_drawn(sample, plan, rows))
    strata = {
        each.cell: ReviewStratum(
            **asdict(each.cell), sample=sample, population=each.population, drawn=0
        )
        for each in drawn
    }
    for each in drawn:
        strata[each.cell].drawn += 1
    ReviewStratum.objects.bulk_create(strata.values())
    sample.population = sum(stratum.population for stratum in strata.values())
    sample.save(update_fields=["population"])
    queues = _queues(drawn)
    # By a second digest: the one used for drawing is smallest in each stratum.
    by_chance = sorted(drawn, key=lambda each: each.again)
    twice = by_chance[: round(sample.second_share * len(drawn))]
    Review.objects.bulk_create(
        [
            Review(
                answer_id=each.answer,
                stratum=strata[each.cell],
                tag_id=queues[each.tags],
                round=number,
            )
            for number, chosen in ((1, drawn), (2, twice))
            for each in chosen
        ],
        batch_size=500,
    )


def _drawn(
    sample: ReviewSample, plan: Plan, rows: QuerySet[Answer]
) -> Iterator[_Drawn]:
    """Yield the drawn answers, each with its stratum and that stratum's size.

    A single statement, so that counts and draw see the same state.
    """
    names = cell_fields(plan.dimensions)
    partition: list[F | Value] = [F(name) for name in names]
    partition = partition or [Value(1)]
    chosen = rows.annotate(
        digest=_digest(sample.seed, "draw"),
        again=_digest(sample.seed, "again"),
        place=Window(RowNumber(), partition_by=partition, order_by=["digest", "pk"]),
        alike=Window(Count("pk"), partition_by=partition),
    ).filter(place__lte=max(plan.drawn.values()))
    tags = ("product_line_id", "line_of_business_id")
    # Name each column once: a filtered window query loses a column that is named twice.
    columns = dict.fromkeys(("pk", "alike", "place", "again", *tags, *names))
    for row in chosen.values(*columns).order_by("digest", "pk"):
        cell = Cell(**{name: row[name] for name in names})
        # A stratum that appeared after planning still gets one answer.
        if row["place"] <= plan.drawn.get(cell, 1):
            queue = tuple(row[tag] for tag in tags)
            yield _Drawn(cell, row["alike"], row["pk"], row["again"], queue)


def _digest(seed: int, what: str) -> MD5:
    return MD5(Concat(Value(f"{seed} {what} "), Cast("pk", CharField())))


def _queues(drawn: Sequence[_Drawn]) -> dict[tuple[int | None, ...], int | None]:
    """Map each pair of tags to one of them, preferably one that has experts."""
    pairs = {each.tags for each in drawn}
    found = {tag for pair in pairs for tag in pair if tag}
    rows = Tag.objects.filter(pk__in=found, experts__is_active=True)
    with_expert = set(rows.values_list("pk", flat=True))
    queues = {}
    for pair in pairs:
        tags = sorted(filter(None, pair), key=lambda tag: tag not in with_expert)
        queues[pair] = next(iter(tags), None)
    return queues
