"""Votes as a table for a spreadsheet."""

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import chain

from kb.archive.spreadsheet_cells import inert
from qa.models import Vote

COLUMNS = (
    "vote", "reasons", "comment", "expected_answer", "voter", "voted_at", "handled_at",
    "handled_by", "answer", "question", "outcome", "gate", "reason", "text", "asked_at",
)  # fmt: skip
WITHHELD = "withheld from you"


def csv_lines(votes: Iterable[Vote]) -> Iterator[str]:
    """Yield the heads and a line a vote; no cell is ever run as a formula.

    What rests on entries that the reader may not see is withheld.

    Args:
        votes: Of `Vote.objects.visible_to`, with their answers and users.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    for row in chain([COLUMNS], map(_cells, votes)):
        writer.writerow([inert(cell) for cell in row])
        yield _drained(buffer)


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


def _drained(buffer: io.StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text
