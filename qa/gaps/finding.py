"""Finding gaps: refused and voted-down questions are clustered in the background.

Answering a question writes nothing here. The job reads the questions refused or voted
down since its last run, embeds them in batches, and assigns each to the nearest gap of
its knowledge base or to a new one.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import numpy as np
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from accounts.prepared import execute
from jobs.models import Job
from jobs.run import JobRun
from kb.embedding.embedder import get_embedder
from kb.embedding.models import EmbeddingModel
from kb.embedding.services import active_model
from kb.enrichment.models import Proposal
from kb.entries.models import Entry
from qa.answers.models import Answer
from qa.gaps.clusters import Block, Home, gather, most_central, moved
from qa.gaps.escalation_models import Escalation
from qa.gaps.models import HALF_LIFE, LANDMARK, Gap, GapCursor, GapQuestion
from qa.gaps.repeats import start_asking_open_gaps
from qa.votes.models import Vote

KIND: Final = "qa.find_gaps"
BATCH: Final = 1_000
# A row may be committed this long after its own timestamp.
_LATE: Final = timedelta(minutes=5)
_MIDDLES_AT_ONCE: Final = 4_096

# Recomputes a gap's counts, and its impact as `qa.gaps.models.impact` defines it.
_COUNT: Final = Path(__file__).with_name("count_gaps.sql").read_text(encoding="utf-8")


@dataclass(slots=True, eq=False)
class _Question:
    """A question in no gap yet; `vector` is of shape (dimensions,) once embedded."""

    why: GapQuestion.Why
    seen_at: datetime
    answer_id: UUID
    knowledge_base_id: int
    asker_id: int | None
    question: str
    asked_at: datetime
    vector: np.ndarray = field(default_factory=lambda: np.empty(0))


_ANSWER_FIELDS = ("pk", "knowledge_base_id", "asker_id", "question", "created_at")
# The cursor field for each kind.
_CURSORS = {
    GapQuestion.Why.REFUSED: "refused_to",
    GapQuestion.Why.VOTED_DOWN: "voted_to",
}


def find_gaps(run: JobRun, *, batch: int = BATCH) -> dict[str, object]:
    """Bring the gaps up to date; the handler of jobs of the kind "qa.find_gaps".

    It may be retried any number of times: questions and cursor are written in one step.
    """
    model = active_model()
    _embed_again(run, model, batch)
    placed = int(run.cursor.get("placed", 0))
    while questions := _pending(batch):
        texts = list(dict.fromkeys(each.question for each in questions))
        vectors = dict(zip(texts, get_embedder(model).encode(texts), strict=True))
        for each in questions:
            each.vector = vectors[each.question]
        with run.step() as step:
            _place(questions, model)
            placed += len(questions)
            step.advance(done=placed, cursor={"placed": placed})
    with run.step():
        _move_on()
        let_go = _let_go()
        _open_fruitless()
        start_asking_open_gaps()
    return {"placed": placed, "let_go": let_go, "open": Gap.objects.open().count()}


def count_gaps(gap_ids: Iterable[int]) -> None:
    """Recompute the counts of gaps from their questions (one statement)."""
    execute(
        _COUNT,
        {
            "gaps": sorted(set(gap_ids)),
            "landmark": LANDMARK,
            "half_life": HALF_LIFE.total_seconds(),
        },
    )


def _pending(limit: int) -> list[_Question]:
    """Return the next questions that are in no gap, refusals first."""
    cursor, _ = GapCursor.objects.get_or_create(pk=1)
    placed = GapQuestion.objects.filter(answer=OuterRef("pk"))
    refused = Answer.objects.live().filter(
        ~Exists(placed),
        _since("decided_at", cursor.refused_to),
        outcome="refused",
        erased_at__isnull=True,
    )
    found = _read(refused, GapQuestion.Why.REFUSED, "decided_at", "", limit)
    placed = GapQuestion.objects.filter(answer=OuterRef("answer_id"))
    voted = Vote.objects.filter(
        ~Exists(placed),
        _since("updated_at", cursor.voted_to),
        is_up=False,
        answer__outcome=Answer.Outcome.ANSWERED,
        answer__channel__in=Answer.LIVE_CHANNELS,
        answer__erased_at__isnull=True,
    )
    seen: dict[UUID, _Question] = {}
    left = limit - len(found)
    for each in _read(
        voted, GapQuestion.Why.VOTED_DOWN, "updated_at", "answer__", left
    ):
        seen.setdefault(each.answer_id, each)
    return [*found, *seen.values()]


def _read(
    rows: QuerySet[Any], why: GapQuestion.Why, seen_at: str, answer: str, limit: int
) -> list[_Question]:
    names = [seen_at, *(f"{answer}{name}" for name in _ANSWER_FIELDS)]
    found = rows.order_by(seen_at, "pk").values_list(*names)
    return [_Question(why, *row) for row in found[:limit]]


def _since(name: str, looked_to: datetime | None) -> Q:
    return Q(**{f"{name}__gt": looked_to - _LATE}) if looked_to else Q()


def _place(questions: Sequence[_Question], model: EmbeddingModel) -> None:
    """Assign questions to gaps, recount these, and advance the cursor."""
    cursor = GapCursor.objects.select_for_update().get(pk=1)
    by_base: dict[int, list[_Question]] = defaultdict(list)
    for each in questions:
        by_base[each.knowledge_base_id].append(each)
    touched: set[int] = set()
    for knowledge_base_id, group in by_base.items():
        touched |= _place_in(knowledge_base_id, group, model)
    adopt_replies([each.answer_id for each in questions])
    count_gaps(touched)
    for why, name in _CURSORS.items():
        times = [each.seen_at for each in questions if each.why is why]
        if times:
            setattr(cursor, name, max(times))
    cursor.save()


def _place_in(
    knowledge_base_id: int, questions: Sequence[_Question], model: EmbeddingModel
) -> set[int]:
    """Place the questions of one knowledge base; return the ids of affected gaps."""
    gaps = Gap.objects.filter(
        knowledge_base_id=knowledge_base_id, embedding_model=model
    )
    homes = gather(np.stack([each.vector for each in questions]), _blocks(gaps))
    groups: dict[tuple[bool, int], list[tuple[_Question, Home]]] = defaultdict(list)
    for each, home in zip(questions, homes, strict=True):
        groups[home.is_new, home.cluster].append((each, home))
    known = gaps.select_for_update(of=("self",), no_key=True).order_by("pk")
    found = known.in_bulk([key for is_new, key in groups if not is_new])
    touched: set[int] = set()
    for (is_new, key), group in groups.items():
        members = [each for each, _ in group]
        if is_new:
            gap = _create(knowledge_base_id, members, model)
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
                distance=home.distance,
                asked_at=each.asked_at,
            )
            for each, home in group
        )
    return touched


def _blocks(gaps: QuerySet[Gap]) -> Iterator[Block]:
    rows = gaps.order_by("pk").values_list("pk", "vector")
    walked = rows.iterator(_MIDDLES_AT_ONCE)
    while block := list(islice(walked, _MIDDLES_AT_ONCE)):
        yield Block(
            np.array([key for key, _ in block], dtype=np.int64),
            np.array([middle for _, middle in block], dtype=np.float32),
        )


def _create(
    knowledge_base_id: int, members: Sequence[_Question], model: EmbeddingModel
) -> Gap:
    times = [each.asked_at for each in members]
    vectors = np.stack([each.vector for each in members])
    return Gap.objects.create(
        knowledge_base_id=knowledge_base_id,
        question=members[most_central(vectors)].question,
        embedding_model=model,
        vector=moved(vectors[0], 0, vectors),
        first_seen=min(times),
        last_seen=max(times),
    )


def _join(gap: Gap, members: Sequence[_Question]) -> None:
    """Update a gap's centroid; reopen a filled gap if it was asked since.

    If a question found only now was asked before the gap was filled, the gap is drafted
    again, so that its questions are asked again.
    """
    middle = np.array(gap.vector, dtype=np.float32)
    vectors = np.stack([each.vector for each in members])
    gap.vector = moved(middle, gap.questions, vectors)
    closed_at = gap.closed_at
    if gap.state == Gap.State.FILLED and closed_at is not None:
        if any(each.asked_at <= closed_at for each in members):
            gap.state, gap.closed_at = Gap.State.DRAFTED, None
        else:
            gap.open_again()
    gap.save()


def adopt_replies(answer_ids: Sequence[UUID]) -> None:
    """Link an expert's reply that was kept as an entry to the gap of its question."""
    replies = Escalation.objects.filter(
        answer__in=answer_ids,
        entry__isnull=False,
        answer__gap_question__gap__state=Gap.State.OPEN,
        answer__gap_question__gap__entry__isnull=True,
    )
    for gap_id, entry_id, at in replies.order_by("pk").values_list(
        "answer__gap_question__gap", "entry", "replied_at"
    ):
        # Another reply, or a dismissal, may have come first.
        waiting = Gap.objects.filter(
            pk=gap_id, state=Gap.State.OPEN, entry__isnull=True
        )
        waiting.update(state=Gap.State.DRAFTED, entry=entry_id, drafted_at=at)


def _move_on() -> None:
    cursor = GapCursor.objects.select_for_update().get(pk=1)
    # Later runs look back `_LATE` from here for rows that were committed late.
    now = timezone.now()
    cursor.refused_to = cursor.voted_to = now
    cursor.save()


def _let_go() -> int:
    """Drop questions whose thumbs down were withdrawn, and gaps left empty."""
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
    """Reopen gaps whose draft was retired or erased, or which have no proposal left."""
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


def _embed_again(run: JobRun, model: EmbeddingModel, batch: int) -> None:
    """Recompute the vectors of gaps of another embedding model from their questions."""
    others = Gap.objects.filter(
        Q(embedding_model__isnull=True) | ~Q(embedding_model=model)
    )
    while gaps := list(others.order_by("pk")[:batch]):
        vectors = get_embedder(model).encode([gap.question for gap in gaps])
        with run.step():
            for gap, vector in zip(gaps, vectors, strict=True):
                gap.vector, gap.embedding_model = vector, model
            Gap.objects.bulk_update(gaps, ["vector", "embedding_model"])
