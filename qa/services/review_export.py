"""Judgements as a table: labels for training and estimates, outside of this system too."""

from collections.abc import Iterator
from itertools import chain

from django.db.models import QuerySet

from kb.archive import spreadsheet_cells
from qa.models import Review

from .vote_export import newest

COLUMNS = (
    "review", "round", "answer", "knowledge_base", "question", "outcome", "gate",
    "text", "completeness", "correctness", "truthfulness", "right_to_show",
    "should_be_answered", "evidence_used", "ideal_answer", "note", "entry", "sample",
    "stratum", "stratum_population", "stratum_drawn", "reviewed_by", "reviewed_at",
    "seconds_spent", "asked_at",
)  # fmt: skip


def csv_lines(reviews: QuerySet[Review]) -> Iterator[str]:
    """Yield the heads and a line a judgement, newest first; no cell is run as a formula.

    Args:
        reviews: Done ones of `Review.objects.visible_to`, with their answers, knowledge
            bases, strata and reviewers.
    """
    rows = chain([COLUMNS], map(_cells, newest(reviews)))
    return spreadsheet_cells.csv_lines(rows)


def _cells(review: Review) -> tuple[str, ...]:
    answer, stratum = review.answer, review.stratum
    values = (
        review.pk,
        review.round,
        answer.pk,
        answer.knowledge_base.slug,
        answer.question,
        answer.outcome,
        answer.gate,
        answer.text,
        review.completeness,
        review.correctness,
        review.truthfulness,
        review.is_right_to_show,
        review.should_be_answered,
        " ".join(map(str, review.evidence_used)),
        review.ideal_answer,
        review.note,
        review.entry_id,
        stratum.sample_id if stratum else None,
        stratum.pk if stratum else None,
        stratum.population if stratum else None,
        stratum.drawn if stratum else None,
        review.reviewed_by.get_username() if review.reviewed_by else None,
        review.reviewed_at.isoformat() if review.reviewed_at else None,
        review.seconds_spent,
        answer.created_at.isoformat(),
    )
    return tuple("" if value is None else str(value) for value in values)
