"""Finding gaps: refused and voted-down questions gathered by meaning, beside the ask path.

Nothing is written while a question is answered. The job reads what was refused or voted
down since it last looked, embeds it batch by batch, and lets every question join the
nearest gap of its knowledge base or found one.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final
from uuid import UUID

import numpy as np
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from jobs.models import Job
from jobs.run import JobRun
from kb.embedding.embedder import embedder_of
from kb.embedding.models import EmbeddingModel
from kb.embedding.services import active_model
from kb.enrichment.models import Proposal
from kb.entries.models import Entry
from kb.search.sql import execute
from qa.answers.models import Answer
from qa.gaps.clusters import Block, gather, most_central, moved
from qa.gaps.escalation_models import Escalation
from qa.gaps.models import HALF_LIFE, LANDMARK, Gap, GapCursor, GapQuestion
from qa.votes.models import Vote

KIND: Final = "qa.find_gaps"
BATCH: Final = 1_000
# A row may be committed so long after the time that it bears.
_LATE: Final = timedelta(minutes=5)
_MIDDLES_AT_ONCE: Final = 4_096

# What a gap counts, and its impact as `qa.gaps.models.impact` says.
_COUNT = """
WITH of_asker AS (
    SELECT gap_id, asker_id, count(*) AS questions,
           min(asked_at) AS first_seen, max(asked_at) AS last_seen,
           sum(power(2::float8,
               extract(epoch FROM asked_at - %(landmark)s)::float8 / %(half_life)s
           )) AS weight
    FROM qa_gapquestion WHERE gap_id = ANY(%(gaps)s) GROUP BY gap_id, asker_id
),
of_gap AS (
    SELECT gap_id, sum(questions) AS questions, count(asker_id) AS askers,
           min(first_seen) AS first_seen, max(last_seen) AS last_seen,
           sum(sqrt(weight)) AS score
    FROM of_asker GROUP BY gap_id
)
UPDATE qa_gap SET
    questions = coalesce(c.questions, 0), askers = coalesce(c.askers, 0),
    first_seen = coalesce(c.first_seen, qa_gap.first_seen),
    last_seen = coalesce(c.last_seen, qa_gap.last_seen),
    impact_score = coalesce(c.score, 0)
FROM unnest(%(gaps)s::bigint[]) AS g(id) LEFT JOIN of_gap c ON c.gap_id = g.id
WHERE qa_gap.id = g.id
RETURNING qa_gap.id
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that belongs into a gap and is in none yet.

    Attributes:
        seen_at: When it was refused or voted down.
    """

    seen_at: datetime
    why: GapQuestion.Why
    answer_id: UUID
    knowledge_base_id: int
    asker_id: int | None
    question: str
    asked_at: datetime


def find_gaps(run: JobRun, *, batch: int = BATCH) -> dict[str, object]:
    """Bring the gaps up to date; the handler of jobs of the kind "qa.find_gaps".

    Any number of attempts come to the same end: a question and how far was looked are
    written in one step.

    Returns:
        How many questions were placed and let go of, and how many gaps are open.
    """
    model = active_model()
    _embed_anew(run, model, batch)
    placed = int(run.cursor.get("placed", 0))
    while asked := _pending(batch):
        texts = list(dict.fromkeys(each.question for each in asked))
        made = dict(zip(texts, embedder_of(model).encode(texts), strict=True))
        vectors = np.stack([made[each.question] for each in asked])
        with run.step() as step:
            _place(_Group(asked, vectors), model)
            placed += len(asked)
            step.advance(done=placed, cursor={"placed": placed})
    with run.step():
        _move_on()
        let_go = _let_go()
        _open_fruitless()
    return {"placed": placed, "let_go": let_go, "open": Gap.objects.open().count()}


def count_gaps(gap_ids: Iterable[int]) -> None:
    """Bring what gaps count up to date with their questions (one statement)."""
    execute(
        _COUNT,
        {
            "gaps": sorted(set(gap_ids)),
            "landmark": LANDMARK,
            "half_life": HALF_LIFE.total_seconds(),
        },
    )


def _pending(limit: int) -> list[Asked]:
    """Return the next questions that are in no gap, refusals first."""
    cursor, _ = GapCursor.objects.get_or_create(pk=1)
    placed = GapQuestion.objects.filter(answer=OuterRef("pk"))
    refused = Answer.objects.live().filter(
        ~Exists(placed), _since("decided_at", cursor.refused_to), outcome="refused"
    )
    found = [
        _asked(row, GapQuestion.Why.REFUSED)
        for row in refused.order_by("decided_at", "pk").values_list(
            "decided_at", *_ASKED
        )[:limit]
    ]
    placed = GapQuestion.objects.filter(answer=OuterRef("answer_id"))
    voted = Vote.objects.filter(
        ~Exists(placed),
        _since("updated_at", cursor.voted_to),
        is_up=False,
        answer__outcome=Answer.Outcome.ANSWERED,
        answer__channel__in=Answer.LIVE_CHANNELS,
    )
    seen: dict[UUID, Asked] = {}
    names = [f"answer__{name}" for name in _ASKED]
    for row in voted.order_by("updated_at", "pk").values_list("updated_at", *names)[
        : limit - len(found)
    ]:
        one = _asked(row, GapQuestion.Why.VOTED_DOWN)
        seen.setdefault(one.answer_id, one)
    return [*found, *seen.values()]


def _asked(row: tuple[Any, ...], why: GapQuestion.Why) -> Asked:
    seen_at, *rest = row
    return Asked(seen_at, why, *rest)


_ASKED = ("pk", "knowledge_base_id", "asker_id", "question", "created_at")


def _since(name: str, looked_to: datetime | None) -> Q:
    return Q(**{f"{name}__gt": looked_to - _LATE}) if looked_to else Q()


def _place(everything: "_Group", model: EmbeddingModel) -> None:
    """Let questions join gaps or found some, count these, and note how far was looked."""
    cursor = GapCursor.objects.select_for_update().get(pk=1)
    asked = everything.asked
    by_base: dict[int, list[int]] = defaultdict(list)
    for at, each in enumerate(asked):
        by_base[each.knowledge_base_id].append(at)
    touched: set[int] = set()
    for knowledge_base_id, places in by_base.items():
        group = everything.chosen(places)
        touched |= _place_in(knowledge_base_id, group, model)
    adopt_replies([each.answer_id for each in asked])
    count_gaps(touched)
    for why, name in _CURSORS.items():
        times = [each.seen_at for each in asked if each.why is why]
        if times:
            setattr(cursor, name, max(times))
    cursor.save()


_CURSORS = {
    GapQuestion.Why.REFUSED: "refused_to",
    GapQuestion.Why.VOTED_DOWN: "voted_to",
}


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Questions of one knowledge base.

    Attributes:
        vectors: Of shape (len(asked), dimensions).
    """

    asked: Sequence[Asked]
    vectors: np.ndarray

    def chosen(self, places: Sequence[int]) -> "_Group":
        return _Group([self.asked[at] for at in places], self.vectors[places])


def _place_in(knowledge_base_id: int, group: _Group, model: EmbeddingModel) -> set[int]:
    """Place the questions of one knowledge base; returns the gaps that it touched."""
    gaps = Gap.objects.filter(
        knowledge_base_id=knowledge_base_id, embedding_model=model
    )
    homes = gather(group.vectors, _blocks(gaps))
    places: dict[tuple[bool, int], list[int]] = defaultdict(list)
    for at, home in enumerate(homes):
        places[home.is_new, home.cluster].append(at)
    known = gaps.select_for_update(of=("self",), no_key=True).order_by("pk")
    found = known.in_bulk([key for is_new, key in places if not is_new])
    touched: set[int] = set()
    for (is_new, key), positions in places.items():
        members = group.chosen(positions)
        if is_new:
            gap = _found(knowledge_base_id, members, model)
        else:
            gap = found[key]
            _join(gap, members)
        touched.add(gap.pk)
        GapQuestion.objects.bulk_create(
            GapQuestion(
                gap=gap,
                answer_id=each.answer_id,
                asker_id=each.asker_id,
                why=each.why,
                distance=homes[place].distance,
                asked_at=each.asked_at,
            )
            for place, each in zip(positions, members.asked, strict=True)
        )
    return touched


def _blocks(gaps: QuerySet[Gap]) -> Iterator[Block]:
    """Yield the middles of gaps, some thousand at a time."""
    rows = gaps.order_by("pk").values_list("pk", "vector")
    walked = rows.iterator(_MIDDLES_AT_ONCE)
    while block := list(islice(walked, _MIDDLES_AT_ONCE)):
        yield Block(
            np.array([key for key, _ in block], dtype=np.int64),
            np.array([middle for _, middle in block], dtype=np.float32),
        )


def _found(knowledge_base_id: int, members: _Group, model: EmbeddingModel) -> Gap:
    times = [each.asked_at for each in members.asked]
    central = members.asked[most_central(members.vectors)]
    return Gap.objects.create(
        knowledge_base_id=knowledge_base_id,
        question=central.question,
        embedding_model=model,
        vector=moved(members.vectors[0], 0, members.vectors),
        first_seen=min(times),
        last_seen=max(times),
    )


def _join(gap: Gap, members: _Group) -> None:
    """Move a gap's middle; one that was filled is open again if it is asked since.

    What was asked before it was filled, and is found only now, is asked again with it.
    """
    middle = np.array(gap.vector, dtype=np.float32)
    gap.vector = moved(middle, gap.questions, members.vectors)
    closed_at = gap.closed_at
    if gap.state == Gap.State.FILLED and closed_at is not None:
        if any(each.asked_at <= closed_at for each in members.asked):
            gap.state, gap.closed_at = Gap.State.DRAFTED, None
        else:
            gap.open_again()
    gap.save()


def adopt_replies(answer_ids: Sequence[UUID]) -> None:
    """Let an expert's reply that was kept as an entry fill the gap of its question."""
    replies = Escalation.objects.filter(
        answer__in=answer_ids,
        entry__isnull=False,
        answer__gap_question__gap__state=Gap.State.OPEN,
        answer__gap_question__gap__entry__isnull=True,
    )
    for gap_id, entry_id, at in replies.order_by("pk").values_list(
        "answer__gap_question__gap", "entry", "replied_at"
    ):
        # Another reply, or whoever dismissed it, may have been first.
        waiting = Gap.objects.filter(
            pk=gap_id, state=Gap.State.OPEN, entry__isnull=True
        )
        waiting.update(state=Gap.State.DRAFTED, entry=entry_id, drafted_at=at)


def _move_on() -> None:
    """Note that everything so far was looked at."""
    cursor = GapCursor.objects.select_for_update().get(pk=1)
    # What is committed late is read once more.
    now = timezone.now()
    cursor.refused_to = cursor.voted_to = now
    cursor.save()


def _let_go() -> int:
    """Drop questions whose thumbs down were taken back, and gaps that nothing is left of."""
    down = Vote.objects.filter(answer=OuterRef("answer_id"), is_up=False)
    gone = GapQuestion.objects.filter(~Exists(down), why=GapQuestion.Why.VOTED_DOWN)
    gap_ids = set(gone.values_list("gap_id", flat=True))
    if not gap_ids:
        return 0
    deleted, _ = gone.delete()
    count_gaps(gap_ids)
    untouched = Gap.objects.filter(state=Gap.State.OPEN, entry=None, owner=None)
    untouched.filter(pk__in=gap_ids, questions=0).delete()
    return deleted


def _open_fruitless() -> None:
    """Open gaps again whose draft was retired or erased, or of which no proposal is left."""
    running = Job.objects.filter(
        pk=OuterRef("proposing_job_id"), finished_at__isnull=True
    )
    proposed = Proposal.objects.filter(job_id=OuterRef("proposing_job_id"))
    hopeful = proposed.exclude(state=Proposal.State.REJECTED)
    nothing = Q(entry__isnull=True) & ~Exists(running) & ~Exists(hopeful)
    drafted = Gap.objects.filter(
        nothing | Q(entry__state=Entry.State.RETIRED), state=Gap.State.DRAFTED
    )
    locked = drafted.select_for_update(of=("self",), no_key=True).order_by("pk")
    for gap in locked:
        gap.open_again()
        gap.save()


def _embed_anew(run: JobRun, model: EmbeddingModel, batch: int) -> None:
    """Give gaps of another embedding model the vectors of their questions."""
    others = Gap.objects.filter(
        Q(embedding_model__isnull=True) | ~Q(embedding_model=model)
    )
    while gaps := list(others.order_by("pk")[:batch]):
        vectors = embedder_of(model).encode([gap.question for gap in gaps])
        with run.step():
            for gap, vector in zip(gaps, vectors, strict=True):
                gap.vector, gap.embedding_model = vector, model
            Gap.objects.bulk_update(gaps, ["vector", "embedding_model"])
