"""Labels from reviews: which entries answer a question, and with what weight.

A review labels a question with the entries that the answer cited, that the expert
marked or that were written with the review. A question that should be answered but has
no such entry is left out: whether another entry answers it is unknown. So is a question
on which two experts disagree.
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
"""The most reviews of a knowledge base that are read, newest first."""
GOLDEN_PERCENT: Final = 25


class Part(StrEnum):
    TRAINING = "training"
    GOLDEN = "golden"


def part_of(group: str) -> Part:
    share = int(digest(group)[:8], 16) % 100
    return Part.GOLDEN if share < GOLDEN_PERCENT else Part.TRAINING


def group_of(answer: Answer) -> str:
    """Return the key that decides an answer's part: its first entry, if any."""
    first = min(answer.evidence.all(), key=lambda piece: piece.rank, default=None)
    if first is None or first.entry_id is None:
        return f"question {answer.question}"
    return f"entry {first.entry_id}"


@dataclass(frozen=True, slots=True)
class ReviewedQuestion:
    """A question with the ids of the entries that answer it; none: refusing is right.

    Attributes:
        right: Ids of the entries that answer it.
        is_right: Whether the answer given was right; None if nobody judged it.
        is_doubtful: Only one expert judged, and called wrong what the verifier thinks
            likely to answer.
        weight: How many questions it stands for, relative to the others.
        at: The time of the latest review.
    """

    answer: Answer
    right: frozenset[int]
    is_right: bool | None
    is_doubtful: bool
    weight: float
    at: datetime


def reviewed_questions(knowledge_base: KnowledgeBase) -> list[ReviewedQuestion]:
    """Return the questions that experts judged, newest first, weighted by their strata.

    Each stands for its stratum's population divided by the number labelled in it; one
    requested by hand stands for itself. The weights are 1 on average.
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
    """Return each review's weight, 1 on average; expects one review per answer."""
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
    """Return whether nothing may be shown if no right entry is named.

    True for a correct refusal and for an entry that was wrongly shown; a wrong sentence
    by a language model says nothing about the entries.
    """
    if answer.outcome == Answer.Outcome.ANSWERED:
        return is_good is False and not answer.language_model
    return is_good is False


def _known(ids: Iterable[int | None]) -> set[int]:
    return {pk for pk in ids if pk is not None}
