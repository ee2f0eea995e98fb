"""What reviews say of questions: which entries answer them, with what weight.

An expert's review says what was right to show and what should have been refused. It names
entries by what the answer cited, what the expert marked, or what was written with it. What
names none is left out: whether another entry answers is not known. So is a question on
which two experts disagree.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from typing import Final

from accounts.ids import digest
from kb.documents.models import KnowledgeBase
from qa.answers.models import Answer
from qa.reviews.models import Review

from .second_opinions import is_doubtful

EVIDENCE: Final = "answer__evidence"
MAX_READ: Final = 1_200
"""Reviews of a knowledge base that are read, the newest ones."""
GOLDEN_PERCENT: Final = 25


class Part(StrEnum):
    TRAINING = "training"
    GOLDEN = "golden"


def part_of(group: str) -> Part:
    share = int(digest(group)[:8], 16) % 100
    return Part.GOLDEN if share < GOLDEN_PERCENT else Part.TRAINING


def group_of(answer: Answer) -> str:
    """Return what decides an answer's part: the first entry of its evidence, if any."""
    first = min(answer.evidence.all(), key=lambda piece: piece.rank, default=None)
    if first is None or first.entry_id is None:
        return f"question {answer.question}"
    return f"entry {first.entry_id}"


@dataclass(frozen=True, slots=True)
class ReviewedQuestion:
    """That of a question entries of these ids are right; of none: nothing may be shown.

    `weight` is how many questions it stands for, relative to the others. `is_right` says
    whether what was written was right; None where nobody judged it. `is_doubtful`: one
    expert alone calls wrong what the verifier thinks likely to answer.
    """

    answer: Answer
    right: frozenset[int]
    is_right: bool | None
    is_doubtful: bool
    weight: float
    at: datetime


def reviewed_questions(knowledge_base: KnowledgeBase) -> list[ReviewedQuestion]:
    """Return what experts judged, newest first, weighted by the strata of their samples.

    Each stands for as many answers as its stratum has for each one labelled of it; one
    requested by hand stands for itself. In all they count as many as they are.
    """
    rows = Review.objects.teaching().filter(answer__knowledge_base=knowledge_base)
    rows = rows.filter(answer__channel__in=Answer.LIVE_CHANNELS)
    rows = rows.select_related("answer__asker", "stratum").prefetch_related(EVIDENCE)
    read = rows.order_by("-answer__created_at", "answer_id", "round")[:MAX_READ]
    by_answer = (list(each) for _, each in groupby(read, lambda row: row.answer_id))
    judged = [(each[0], label) for each in by_answer if (label := _of(each))]
    weights = weights_of([first for first, _ in judged])
    return [
        replace(label, weight=weight)
        for (_, label), weight in zip(judged, weights, strict=True)
    ]


def weights_of(reviews: Sequence[Review]) -> list[float]:
    """Return how many answers each stands for, 1 in the mean; one review an answer."""
    drawn = Counter(review.stratum_id for review in reviews)
    weights = [
        review.stratum.population / drawn[review.stratum_id] if review.stratum else 1.0
        for review in reviews
    ]
    mean = sum(weights) / max(len(weights), 1)
    return [weight / mean for weight in weights]


def cited_entries(answer: Answer) -> set[int]:
    return _known(p.entry_id for p in answer.evidence.all() if p.is_cited)


def _of(reviews: Sequence[Review]) -> ReviewedQuestion | None:
    answer = reviews[0].answer
    is_answer = answer.outcome == Answer.Outcome.ANSWERED
    said = {r.is_right_to_show if is_answer else r.should_be_answered for r in reviews}
    if len(said) > 1:
        return None
    (is_good,) = said
    used = {pk for review in reviews for pk in review.evidence_used}
    right = _known(p.entry_id for p in answer.evidence.all() if p.pk in used)
    right |= _known(review.entry_id for review in reviews)
    if is_answer and is_good:
        right |= cited_entries(answer)
    if not right and not _may_be_none(answer, is_good):
        return None
    at = max(review.reviewed_at for review in reviews if review.reviewed_at)
    is_right = is_good if is_answer else (None if is_good else False)
    return ReviewedQuestion(
        answer,
        frozenset(right),
        is_right,
        is_doubtful=len(reviews) == 1 and is_doubtful(reviews[0]),
        weight=1.0,
        at=at,
    )


def _may_be_none(answer: Answer, is_good: bool | None) -> bool:
    """Tell whether nothing may be shown where no right entry is named.

    That is so of a refusal that was right, and of an entry that was shown and was wrong;
    a language model's wrong sentence says nothing of the entries.
    """
    if answer.outcome == Answer.Outcome.ANSWERED:
        return is_good is False and not answer.language_model
    return is_good is False


def _known(ids: Iterable[int | None]) -> set[int]:
    return {pk for pk in ids if pk is not None}
