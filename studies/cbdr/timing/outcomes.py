"""The outcome of each question under one decider, at any threshold."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .asking import NOTHING, Cost, Row
from .curve import retrieves
from .questions import Part, TimedQuestion


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question under one decider.

    Attributes:
        known_probability: In [0, 1]; None where it is unknown.
        alone: Whether the closed-book answer is right.
        with_notes: Whether the answer with notes is right.
        passes: Whether the hard gate passes the notes.
        verbatim: Whether the entry shown word for word is right; None if none is shown.
        decided: Cost of deciding.
        drafted: Further cost of the closed-book answer; None where not measured.
    """

    asked: TimedQuestion
    known_probability: float | None
    alone: bool
    with_notes: bool
    passes: bool
    verbatim: bool | None
    decided: Cost
    drafted: Cost | None


def outcomes_of(
    questions: Sequence[TimedQuestion],
    with_notes: Mapping[str, Row],
    alone: Mapping[str, Row],
    considered: Mapping[str, Row],
) -> list[Outcome]:
    """Join a record's rows by the questions' ids.

    All deciders share one closed-book answer: drafts differ by rounding in a batch, and
    no decider should gain or lose by that.

    Args:
        considered: A decider's rows; a question without one was not tried and costs
            nothing.
    """
    found = []
    for one in questions:
        name = one.case.id
        row, helped = considered.get(name, {}), with_notes[name]
        verbatim = helped["verbatim"]
        found.append(
            Outcome(
                asked=one,
                known_probability=row.get("sureness"),
                alone=one.is_right(alone[name]["answer"]),
                with_notes=one.is_right(helped["answer"]),
                passes=bool(helped["passes"]),
                verbatim=None if verbatim is None else one.is_right(verbatim),
                decided=Cost(**row["decided"]) if row else NOTHING,
                drafted=Cost(**row["answered"]) if "answered" in row else None,
            )
        )
    return found


Account = Callable[[Outcome], bool]
"""Returns whether retrieving gives a right outcome."""


def as_published(row: Outcome) -> bool:
    """Answer with whatever was found, as in the papers."""
    return row.with_notes


def behind_the_gates(row: Outcome) -> bool:
    """Answer word for word if an entry matches, and refuse if the hard gate does.

    A refusal is right if the question is unanswerable.
    """
    if row.verbatim is not None:
        return row.verbatim
    if row.passes:
        return row.with_notes
    return row.asked.case.is_answerable is False


def columns(
    rows: Sequence[Outcome], account: Account
) -> tuple[list[float | None], list[bool], list[bool]]:
    """Return known probabilities, and what is right closed-book and by retrieving."""
    return (
        [row.known_probability for row in rows],
        [row.alone for row in rows],
        [account(row) for row in rows],
    )


def rights(
    rows: Sequence[Outcome], sent: Sequence[bool], account: Account
) -> list[bool]:
    """Return which questions have a right outcome if these are sent to retrieval."""
    return [
        account(row) if is_sent else row.alone
        for row, is_sent in zip(rows, sent, strict=True)
    ]


def of_part(rows: Sequence[Outcome], part: Part) -> list[Outcome]:
    return [row for row in rows if row.asked.part is part]


def sent_by(rows: Sequence[Outcome], threshold: float | None) -> list[bool]:
    """Return which questions a threshold sends to retrieval."""
    return [retrieves(row.known_probability, threshold) for row in rows]
