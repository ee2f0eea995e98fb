"""Votes as a table for a spreadsheet."""

from collections.abc import Iterator
from itertools import chain
from typing import TypeVar

from django.db.models import Model, QuerySet

from kb.archive import spreadsheet_cells
from qa.models import Vote

COLUMNS = (
    "vote", "reasons", "comment", "expected_answer", "voter", "voted_at", "handled_at",
    "handled_by", "answer", "question", "outcome", "gate", "reason", "text", "asked_at",
)  # fmt: skip
_AT_ONCE = 500
Row = TypeVar("Row", bound=Model)
WITHHELD = "withheld from you"


def csv_lines(votes: QuerySet[Vote]) -> Iterator[str]:
    """Yield the heads and a line a vote, newest first; no cell is ever run as a formula.

    What rests on entries that the reader may not see is withheld.

    Args:
        votes: Of `Vote.objects.visible_to`, with their answers and users.
    """
    return spreadsheet_cells.csv_lines(chain([COLUMNS], map(_cells, newest(votes))))


def newest(rows: QuerySet[Row]) -> Iterator[Row]:
    """Read in batches: a cursor would hold a transaction as long as somebody downloads."""
    rows = rows.order_by("-pk")
    batch = list(rows[:_AT_ONCE])
    while batch:
        yield from batch
        batch = list(rows.filter(pk__lt=batch[-1].pk)[:_AT_ONCE])


def _cells(vote: Vote) -> tuple[str, ...]:
    answer = vote.answer
    says, should, was = vote.comment, vote.expected_answer, answer.text
    if vote.is_withheld:
        says, should, was = (WITHHELD if text else "" for text in (says, should, was))
    return (
        str(vote),
        " ".join(vote.reasons),
        says,
        should,
        vote.user.get_username(),
        vote.updated_at.isoformat(),
        vote.handled_at.isoformat() if vote.handled_at else "",
        vote.handled_by.get_username() if vote.handled_by else "",
        str(answer.pk),
        answer.question,
        answer.outcome,
        answer.gate,
        answer.shown_reason,
        was,
        answer.created_at.isoformat(),
    )
